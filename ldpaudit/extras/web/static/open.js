// Progress, dropped files and the slider; without this script each has a button instead.
"use strict";

async function look() {
  const here = document.getElementById("progress");
  if (!here) return;
  try {
    const answer = await fetch(location.href, { redirect: "manual" });
    if (answer.type === "opaqueredirect") return location.reload();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const there = page.getElementById("progress");
    if (!there) return location.reload();
    if (here.innerHTML !== there.innerHTML) here.replaceChildren(...there.childNodes);
  } catch {
    here.querySelector("h2").textContent = "ldpaudit does not answer: it may have ended";
  }
  setTimeout(look, 1000);
}
look();

for (const field of document.querySelectorAll(".drop")) {
  field.addEventListener("dragover", () => field.classList.add("over"));
  for (const end of ["dragleave", "drop"]) {
    field.addEventListener(end, () => field.classList.remove("over"));
  }
}

for (const form of document.querySelectorAll("form[data-now]")) {
  form.addEventListener("change", () => form.submit());
  form.querySelector("button").hidden = true;
}

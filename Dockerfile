# ldpaudit for the CPU, without root and without tools for building.
#
#   docker build -t ldpaudit .
#   docker run --rm -v "$PWD:/data" --user "$(id -u)" ldpaudit run release.parquet
#   docker run --rm -p 127.0.0.1:8000:8000 ldpaudit open --container --port 8000
#
# Networks (--build-arg EXTRAS=[networks]) need torch. TORCH_INDEX is an index with builds of torch
# for the CPU; without it torch brings CUDA along.

ARG PYTHON=3.12
FROM python:${PYTHON}-slim AS build
ARG EXTRAS=""
ARG TORCH_INDEX=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/ldpaudit
ENV PATH=/opt/ldpaudit/bin:$PATH
COPY . /source
# hadolint ignore=DL3013
RUN pip install ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "/source$EXTRAS" \
    && pip uninstall --yes pip

FROM python:${PYTHON}-slim
LABEL org.opencontainers.image.title="ldpaudit" \
      org.opencontainers.image.description="Audits releases with privatized labels" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/ldpaudit /opt/ldpaudit
ENV PATH=/opt/ldpaudit/bin:$PATH HOME=/tmp PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /data
EXPOSE 8000
ENTRYPOINT ["ldpaudit"]
CMD ["--help"]

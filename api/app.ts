import { OpenAPIHono } from '@hono/zod-openapi'
import pino, { type Logger } from 'pino'
import type { Oidc } from '../clients/oidc.ts'
import type { PlatformClient } from '../clients/platform.ts'
import type { SlackClient } from '../clients/slack/client.ts'
import type { Db } from '../db/connect.ts'
import type { EnvironmentDefaults } from '../db/settings.ts'
import { placementLimits } from '../domain/placement.ts'
import { createPlatformState } from '../effects/platform-state.ts'
import { noRuns, type Runs } from '../effects/runs.ts'
import { alertRoutes } from './alerts.ts'
import { plainApprovalRoutes } from './approval-plain.ts'
import { approvalRoutes } from './approvals.ts'
import { auditRoutes } from './audit.ts'
import { capabilityGapRoutes } from './capability-gaps.ts'
import { configRoutes } from './config.ts'
import type { ApiDeps } from './deps.ts'
import { deviceRoutes } from './devices.ts'
import { docsPage } from './docs.ts'
import { effectRoutes } from './effects.ts'
import { expectationRoutes } from './expectations.ts'
import { grantRoutes } from './grants.ts'
import { healthRoutes } from './health.ts'
import { hostRoutes } from './hosts.ts'
import { authenticate } from './http/authenticate.ts'
import type { Env } from './http/context.ts'
import { openApiDocument } from './http/endpoint.ts'
import { createMetrics } from './http/metrics.ts'
import {
  accessLog,
  declaredMethods,
  limitBody,
  readableAddress,
  requestId,
  securityHeaders,
} from './http/middleware.ts'
import { answerProblem, invalidRequest, toProblem } from './http/problem.ts'
import { incidentEndingRoutes } from './incident-endings.ts'
import { incidentEventRoutes } from './incident-events.ts'
import { incidentExportRoutes } from './incident-export.ts'
import { incidentSurroundingsRoutes } from './incident-surroundings.ts'
import { incidentRoutes } from './incidents.ts'
import { ingestRoutes } from './ingest.ts'
import { inventoryRoutes } from './inventory.ts'
import { judgeRoutes } from './judge.ts'
import { linkRoutes } from './links.ts'
import { deviceCallRoutes } from './mesh/calls.ts'
import { enrolmentRoutes } from './mesh/enrolment.ts'
import { nodeRoutes } from './nodes.ts'
import { oidcRoutes } from './oidc.ts'
import { operatorRoutes } from './operators.ts'
import { proposalRoutes } from './proposals.ts'
import { resourceStateRoutes } from './resource-state.ts'
import { resourceRoutes } from './resources.ts'
import { sessionRoutes } from './session.ts'
import { shardRoutes } from './shards.ts'
import { signpostRoutes } from './signpost.ts'
import { slackRoutes } from './slack/interactions.ts'
import { statusRoutes } from './status.ts'
import { streamRoutes } from './stream.ts'
import { tenantRoutes } from './tenants.ts'
import { tokenRoutes } from './tokens.ts'
import { usageRoutes } from './usage.ts'
import { verifyRoutes } from './verify.ts'
import { pageOfNowhere, readWeb, webRoutes } from './web.ts'

export type ApiOptions = {
  db: Db
  /** A pool of its own for locks that are held while a write runs; `db` itself where few run at once. */
  locks?: Db
  platform?: PlatformClient | null
  mesh?: ApiDeps['mesh']
  placement?: ApiDeps['placement']
  runs?: Runs
  log?: Logger
  environment?: EnvironmentDefaults
  publicUrl?: string | null
  oidc?: Oidc | null
  slack?: SlackClient | null
  temporalPage?: ApiDeps['temporalPage']
  /** Where the built pages are; without them there are signposts. */
  webDir?: string | null
  closing?: AbortSignal
}

export type Api = { app: OpenAPIHono<Env>; deps: ApiDeps }

const routers = [
  ingestRoutes,
  incidentRoutes,
  incidentEventRoutes,
  expectationRoutes,
  incidentEndingRoutes,
  incidentExportRoutes,
  incidentSurroundingsRoutes,
  alertRoutes,
  usageRoutes,
  statusRoutes,
  streamRoutes,
  approvalRoutes,
  shardRoutes,
  inventoryRoutes,
  nodeRoutes,
  tenantRoutes,
  hostRoutes,
  linkRoutes,
  resourceRoutes,
  resourceStateRoutes,
  deviceRoutes,
  deviceCallRoutes,
  effectRoutes,
  proposalRoutes,
  capabilityGapRoutes,
  grantRoutes,
  configRoutes,
  judgeRoutes,
  tokenRoutes,
  operatorRoutes,
  auditRoutes,
  verifyRoutes,
]

/** The core API over its dependencies: no socket, no timer, so that a test asks it by `app.request()`. */
export function createApi(options: ApiOptions): Api {
  const { db, platform = null, log = pino({ level: 'silent' }) } = options
  const deps: ApiDeps = {
    db,
    locks: options.locks ?? db,
    platform,
    state: createPlatformState(db, platform, log),
    mesh: options.mesh ?? null,
    placement: options.placement ?? { engine: 'glpk', limits: placementLimits.parse({}) },
    runs: options.runs ?? noRuns,
    metrics: createMetrics(db),
    log,
    environment: options.environment ?? {},
    publicUrl: options.publicUrl ?? null,
    oidc: options.oidc ?? null,
    slack: options.slack ?? null,
    temporalPage: options.temporalPage ?? null,
    closing: options.closing ?? new AbortController().signal,
  }
  const app = new OpenAPIHono<Env>()
  app.onError((error, c) => answerProblem(c, toProblem(error)))
  const { onlyDeclared, noRoute } = declaredMethods(app)
  const web = options.webDir ? readWeb(options.webDir) : null
  app.notFound((c) => (web && pageOfNowhere(c, web)) ?? answerProblem(c, noRoute(c)))
  app.use(requestId, accessLog(log, deps.metrics), securityHeaders, readableAddress)
  healthRoutes(app, deps)

  const router = new OpenAPIHono<Env>({ defaultHook: invalidRequest as never })
  for (const routes of routers) routes(router, deps)
  sessionRoutes(app, deps)
  plainApprovalRoutes(app, deps)
  oidcRoutes(app, deps)
  slackRoutes(app, deps)
  enrolmentRoutes(app, deps)
  app.use('/api/*', authenticate(db, deps.publicUrl), limitBody, onlyDeclared)
  app.route('/api/v1', router)

  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' })
  app.get('/openapi.json', (c) => c.json(openApiDocument(app)))
  app.get('/docs', (c) => {
    c.header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
    return c.html(docsPage(openApiDocument(app) as never))
  })
  if (web) webRoutes(app, web)
  else signpostRoutes(app)
  return { app, deps }
}

import { OpenAPIHono } from '@hono/zod-openapi'
import pino, { type Logger } from 'pino'
import type { Oidc } from '../clients/oidc.ts'
import type { PlatformClient } from '../clients/platform.ts'
import { type AskSns, askSns } from '../clients/sns.ts'
import type { Db } from '../db/connect.ts'
import type { EnvironmentDefaults } from '../db/settings.ts'
import type { DeclaredJob } from '../domain/job.ts'
import { placementLimits } from '../domain/placement.ts'
import { knownPushServices } from '../domain/push.ts'
import { openJobs } from '../effects/jobs/jobs.ts'
import { createPlatformState } from '../effects/platform-state.ts'
import { noRuns, type Runs } from '../effects/runs.ts'
import { type Knowledge, openKnowledge } from '../knowledge/knowledge.ts'
import type { SlackClient } from '../notify/slack/client.ts'
import { newSourceStates, type SourceChange } from '../sources/ask.ts'
import { askMonitoring } from './ask-monitoring.ts'
import type { ApiDeps, Env } from './deps.ts'
import { authenticate } from './http/authenticate.ts'
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
import { alertRoutes } from './routes/alerts.ts'
import { plainApprovalRoutes } from './routes/approval-plain.ts'
import { approvalRoutes } from './routes/approvals.ts'
import { attachmentRoutes } from './routes/attachments.ts'
import { auditRoutes } from './routes/audit.ts'
import { capabilityGapRoutes } from './routes/capability-gaps.ts'
import { changeRoutes } from './routes/changes.ts'
import { clusterRoutes } from './routes/clusters.ts'
import { databaseRoutes } from './routes/databases.ts'
import { destinationRoutes } from './routes/destinations.ts'
import { deviceCallRoutes } from './routes/device-calls.ts'
import { deviceRoutes } from './routes/devices.ts'
import { docsPage } from './routes/docs-page.ts'
import { effectRoutes } from './routes/effects.ts'
import { enrolmentRoutes } from './routes/enrolment.ts'
import { erasureRoutes } from './routes/erasure.ts'
import { expectationRoutes } from './routes/expectations.ts'
import { explainRoutes } from './routes/explain-alerts.ts'
import { grantRoutes } from './routes/grants.ts'
import { healthRoutes } from './routes/health.ts'
import { homeRoutes } from './routes/home.ts'
import { hostRoutes } from './routes/hosts.ts'
import { incidentEndingRoutes } from './routes/incident-endings.ts'
import { incidentEventRoutes } from './routes/incident-events.ts'
import { incidentSurroundingsRoutes } from './routes/incident-surroundings.ts'
import { incidentRoutes } from './routes/incidents.ts'
import { ingestRoutes } from './routes/ingest.ts'
import { ingestChangeRoutes, provenChangeRoutes } from './routes/ingest-changes.ts'
import { pagerdutyRoutes } from './routes/ingest-pagerduty.ts'
import { provenAlertRoutes } from './routes/ingest-proven.ts'
import { snsRoutes } from './routes/ingest-sns.ts'
import { inventoryRoutes } from './routes/inventory.ts'
import { jobRoutes } from './routes/jobs.ts'
import { judgeRoutes } from './routes/judge.ts'
import { knowledgeRoutes } from './routes/knowledge.ts'
import { linkRoutes } from './routes/links.ts'
import { manualChangeRoutes } from './routes/manual-changes.ts'
import { modelRoutes } from './routes/model.ts'
import { nodeRoutes } from './routes/nodes.ts'
import { oidcRoutes } from './routes/oidc.ts'
import { operatorRoutes } from './routes/operators.ts'
import { pageOfNowhere, readWeb, webRoutes } from './routes/pages.ts'
import { postmortemRoutes } from './routes/postmortems.ts'
import { proposalRoutes } from './routes/proposals.ts'
import { pushRoutes } from './routes/push.ts'
import { registryRoutes } from './routes/registry.ts'
import { reportRoutes } from './routes/reports.ts'
import { resourceStateRoutes } from './routes/resource-state.ts'
import { resourceRoutes } from './routes/resources.ts'
import { retentionRoutes } from './routes/retention.ts'
import { sessionRoutes } from './routes/session.ts'
import { configRoutes } from './routes/settings.ts'
import { shardRoutes } from './routes/shards.ts'
import { shiftRoutes } from './routes/shift.ts'
import { signpostRoutes } from './routes/signpost.ts'
import { sitePolicyRoutes } from './routes/site-policy.ts'
import { slackRoutes } from './routes/slack.ts'
import { snsTopicRoutes } from './routes/sns-topics.ts'
import { sourceRoutes } from './routes/sources.ts'
import { statusRoutes } from './routes/status.ts'
import { stopRoutes } from './routes/stops.ts'
import { streamRoutes } from './routes/stream.ts'
import { tenantRoutes } from './routes/tenants.ts'
import { tokenRoutes } from './routes/tokens.ts'
import { trustRoutes } from './routes/trust.ts'
import { undoRoutes } from './routes/undo.ts'
import { usageRoutes } from './routes/usage.ts'
import { verifyRoutes } from './routes/verify.ts'
import { vmRepairRoutes } from './routes/vm-repair.ts'
import { whoMayRoutes } from './routes/who-may.ts'

export type ApiOptions = {
  db: Db
  /**
   * A separate pool for locks that last as long as a write. `db` itself if few writes run at once.
   */
  locks?: Db
  platform?: PlatformClient | null
  mesh?: ApiDeps['mesh']
  /** Jobs that the operator declared. */
  jobs?: readonly DeclaredJob[]
  /** The runbooks. If absent, the shipped runbooks are used, once they are read. */
  knowledge?: Knowledge
  placement?: ApiDeps['placement']
  runs?: Runs
  log?: Logger
  environment?: EnvironmentDefaults
  variables?: ApiDeps['variables']
  /** The directory for files of sources. */
  sourcesDirectory?: string
  publicUrl?: string | null
  /** The words that people type before a command. Default: `nightshift`. */
  commandPrefix?: string
  oidc?: Oidc | null
  slack?: SlackClient | null
  askSns?: AskSns
  pushServices?: readonly string[]
  temporalPage?: ApiDeps['temporalPage']
  modelInUse?: ApiDeps['modelInUse']
  /** The directory of the built pages. Without pages, a link leads to text with commands. */
  webDir?: string | null
  closing?: AbortSignal
}

export type Api = { app: OpenAPIHono<Env>; deps: ApiDeps }

const operations = [
  // Mounts these routes before the routes of alerts, in which the dialect is a parameter of the
  // path.
  ingestChangeRoutes,
  ingestRoutes,
  homeRoutes,
  incidentRoutes,
  incidentEventRoutes,
  expectationRoutes,
  incidentEndingRoutes,
  postmortemRoutes,
  incidentSurroundingsRoutes,
  alertRoutes,
  explainRoutes,
  usageRoutes,
  reportRoutes,
  shiftRoutes,
  trustRoutes,
  undoRoutes,
  stopRoutes,
  statusRoutes,
  modelRoutes,
  streamRoutes,
  approvalRoutes,
  attachmentRoutes,
  pushRoutes,
  shardRoutes,
  inventoryRoutes,
  registryRoutes,
  changeRoutes,
  sourceRoutes,
  snsTopicRoutes,
  nodeRoutes,
  tenantRoutes,
  hostRoutes,
  vmRepairRoutes,
  databaseRoutes,
  manualChangeRoutes,
  linkRoutes,
  resourceRoutes,
  resourceStateRoutes,
  clusterRoutes,
  deviceRoutes,
  deviceCallRoutes,
  effectRoutes,
  jobRoutes,
  knowledgeRoutes,
  sitePolicyRoutes,
  proposalRoutes,
  capabilityGapRoutes,
  grantRoutes,
  configRoutes,
  destinationRoutes,
  judgeRoutes,
  tokenRoutes,
  operatorRoutes,
  whoMayRoutes,
  auditRoutes,
  verifyRoutes,
  retentionRoutes,
  erasureRoutes,
]

/**
 * Builds the core API from its dependencies, without a socket and timers. Requests go through
 * `app.request()`.
 */
export function createApi(options: ApiOptions): Api {
  const { db, platform = null, log = pino({ level: 'silent' }) } = options
  const deps: ApiDeps = {
    db,
    locks: options.locks ?? db,
    platform,
    state: createPlatformState(db, platform, log),
    mesh: options.mesh ?? null,
    jobs: openJobs(options.jobs ?? []),
    placement: options.placement ?? { engine: 'glpk', limits: placementLimits.parse({}) },
    runs: options.runs ?? noRuns,
    metrics: createMetrics(db),
    log,
    environment: options.environment ?? {},
    variables: options.variables ?? [],
    publicUrl: options.publicUrl ?? null,
    commandPrefix: options.commandPrefix ?? 'nightshift',
    oidc: options.oidc ?? null,
    slack: options.slack ?? null,
    askSns: options.askSns ?? askSns,
    pushServices: options.pushServices ?? knownPushServices,
    temporalPage: options.temporalPage ?? null,
    modelInUse: options.modelInUse ?? null,
    knowledge: options.knowledge ?? openKnowledge({}),
    sources: newSourceStates((change) => logSourceChange(log, change), options.sourcesDirectory),
    closing: options.closing ?? new AbortController().signal,
  }
  deps.askMonitoring = (suspects) => askMonitoring(deps, suspects)
  const app = new OpenAPIHono<Env>()
  app.onError((error, c) => answerProblem(c, toProblem(error)))
  const { onlyDeclared, noRoute } = declaredMethods(app)
  const web = options.webDir ? readWeb(options.webDir) : null
  app.notFound((c) => (web && pageOfNowhere(c, web)) ?? answerProblem(c, noRoute(c)))
  app.use(requestId, accessLog(log, deps.metrics), securityHeaders, readableAddress)
  healthRoutes(app, deps)

  const router = new OpenAPIHono<Env>({ defaultHook: invalidRequest as never })
  for (const mount of operations.flat()) mount(router, deps)
  sessionRoutes(app, deps)
  plainApprovalRoutes(app, deps)
  oidcRoutes(app, deps)
  slackRoutes(app, deps)
  enrolmentRoutes(app, deps)
  provenChangeRoutes(app, deps)
  pagerdutyRoutes(app, deps)
  provenAlertRoutes(app, deps)
  snsRoutes(app, deps)
  app.use('/api/*', authenticate(db, deps.publicUrl), limitBody, onlyDeclared)
  app.route('/api/v1', router)

  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' })
  app.get('/openapi.json', (c) => c.json(openApiDocument(app)))
  app.get('/docs', (c) => {
    c.header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
    return c.html(docsPage(openApiDocument(app)))
  })
  if (web) webRoutes(app, web)
  else signpostRoutes(app, deps.commandPrefix)
  return { app, deps }
}

function logSourceChange(log: Logger, change: SourceChange): void {
  if (change.is === 'back') log.info({ source: change.source }, 'a source answers again')
  else
    log.warn(
      { source: change.source, because: change.because },
      'a source does not answer: Nightshift tries it again after 30 s',
    )
}

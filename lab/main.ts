import { createHash, timingSafeEqual } from 'node:crypto'
import { join } from 'node:path'
import { serve } from '@hono/node-server'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import pino from 'pino'
import { z } from 'zod'
import { convergeBody, type EffectAnswer, migrateBody, restartBody, startBody, stopBody } from '../domain/platform.ts'
import { nameFaults } from '../domain/schema-faults.ts'
import { nonceSetting, sayingNonce } from '../domain/start-nonce.ts'
import { bodyOf, problem } from './answers.ts'
import { conditionsIn, converge, listFilesToClear, previewConverge, watchedOnce } from './conditions.ts'
import { removeDrawer } from './databases/drawer.ts'
import { addDatabaseRoutes } from './databases/routes.ts'
import { devicesOf, enrolNode } from './devices.ts'
import { wrongChecks } from './edge-check.ts'
import {
  type EffectRecord,
  healAll,
  healOne,
  type LabJournal,
  type LabOutcome,
  openJournal,
  outcomeOfRequest,
} from './effects.ts'
import { breakIt } from './faults.ts'
import { removeCluster } from './kubernetes/drawer.ts'
import { addClusterRoutes } from './kubernetes/routes.ts'
import { labSettings, startLab } from './lab.ts'
import { inventoryOf, lookAt } from './look.ts'
import { describeMissing, missingServers, type Receiver, startMonitoring } from './monitoring.ts'
import { judge, scenarioName } from './oracle.ts'
import { postTo, startProber } from './prober.ts'
import { faultName, type Lab, WrongTarget } from './state.ts'
import { migrateVm, restartVm, startVm, stopVm } from './vm.ts'

const fencingBody = z.strictObject({ confirms: z.boolean() })
const faultBody = z.strictObject({ fault: faultName, target: z.string().min(1) })
const enrolBody = z.strictObject({ apiUrl: z.url(), token: z.string().min(1) })
/** Selects the faults to heal. Without `fault`, all faults are healed. */
const healQuery = z.object({ fault: faultName.optional(), target: z.string().min(1).optional() })
const oracleQuery = z.object({ scenario: scenarioName, target: z.string().min(1).optional() })
const idempotencyKey = z.string().min(1).max(512)

type LabApi = { lab: Lab; journal: LabJournal; platformToken: string; controlToken: string; receiver: Receiver }

/**
 * Serves the lab over HTTP: the platform for Nightshift, and `/control` for the code that breaks
 * the lab and judges the end of an investigation.
 */
function labApi(options: LabApi): Hono {
  const { lab } = options
  const app = new Hono()
  app.use(bodyLimit({ maxSize: 64 * 1024, onError: (c) => problem(c, 413, 'the body is larger than 64 KiB') }))
  app.onError((error, c) => problem(c, 500, error.message))
  app.notFound((c) => problem(c, 404, `there is no ${c.req.method} ${c.req.path}`))

  app.get('/livez', (c) => c.text('ok\n'))
  app.get('/readyz', async (c) => {
    const { nodes, hosts } = await lookAt(lab)
    const missing = [
      ...nodes.filter(({ answers }) => !answers).map(({ plan }) => plan.id),
      ...hosts.filter(({ state }) => state === 'dead').map(({ id }) => id),
    ]
    return missing.length === 0 ? c.text('ok\n') : problem(c, 503, `not answering: ${missing.join(', ')}`)
  })

  addPlatformRoutes(app, options)
  addControlRoutes(app, options)
  return app
}

/** Adds the routes that Nightshift uses: inventory, effects, converges, and operations on VMs. */
function addPlatformRoutes(app: Hono, { lab, journal, platformToken }: LabApi): void {
  app.use('/v1/*', bearer(platformToken))
  app.get('/v1/inventory', async (c) => c.json(inventoryOf(lab, await lookAt(lab))))
  app.get('/v1/effects/:key', (c) => {
    const record = journal.get(c.req.param('key'))
    return record ? c.json(answerOf(record)) : problem(c, 404, 'no request with this key was accepted')
  })
  app.get('/v1/shards/:id/converge', async (c) => {
    const id = c.req.param('id')
    if (!lab.topology.shards.some((each) => each.id === id)) return problem(c, 404, `there is no shard ${id}`)
    if (c.req.query('dry_run') !== 'true')
      return problem(c, 400, 'a GET only shows what would change: add dry_run=true')
    const [nodes, toClear] = await Promise.all([previewConverge(lab, id), listFilesToClear(lab, id)])
    return c.json({ nodes, ...(toClear && { attachments: [toClear] }) })
  })
  app.post('/v1/shards/:id/converge', async (c) => {
    const id = c.req.param('id')
    if (!lab.topology.shards.some((each) => each.id === id)) return problem(c, 404, `there is no shard ${id}`)
    const body = await bodyOf(c, convergeBody)
    if (body instanceof Response) return body
    return write(c, journal, id, body, async () => {
      const changed = await converge(lab, id)
      return done(changed.join('; ') || 'nothing to change', {}, changed)
    })
  })
  /** Adds a route for an operation on one VM. Each value in the request's body is a host. */
  const onVm = <B extends Record<string, string>>(
    verb: string,
    schema: z.ZodType<B>,
    act: (vm: string, body: B) => Promise<string>,
  ) =>
    app.post(`/v1/vms/:id/${verb}`, async (c) => {
      const vm = c.req.param('id')
      const body = await bodyOf(c, schema)
      if (body instanceof Response) return body
      const perform = async () => {
        const what = await act(vm, body)
        return done(what, { vm, ...body }, [what])
      }
      return unknown(c, lab, vm, Object.values(body)) ?? write(c, journal, vm, body, perform)
    })
  onVm('start', startBody, (vm, { host }) => startVm(lab, vm, host))
  onVm('stop', stopBody, (vm, { host }) => stopVm(lab, vm, host))
  onVm('restart', restartBody, (vm, { host }) => restartVm(lab, vm, host))
  onVm('migrate', migrateBody, (vm, { from, to }) => migrateVm(lab, vm, from, to))
}

/** Adds routes for the code that breaks the lab and judges the end of an investigation. */
function addControlRoutes(app: Hono, { lab, journal, controlToken, receiver }: LabApi): void {
  app.use('/control/*', bearer(controlToken))
  app.get('/control/effects', (c) => c.json({ items: journal.all() }))
  app.get('/control/faults', (c) => c.json({ items: lab.faults }))
  app.post('/control/faults', async (c) => {
    const body = await bodyOf(c, faultBody)
    if (body instanceof Response) return body
    try {
      return c.json(await breakIt(lab, body.fault, body.target), 201)
    } catch (error) {
      if (error instanceof WrongTarget) return problem(c, 422, error.message)
      throw error
    }
  })
  app.delete('/control/faults', async (c) => {
    const query = healQuery.safeParse(c.req.query())
    if (!query.success) return problem(c, 400, nameFaults(query.error))
    const { fault, target } = query.data
    return c.json({ healed: fault ? await healOne(lab, fault, target ?? null) : await healAll(lab) })
  })
  app.post('/control/fencing', async (c) => {
    const body = await bodyOf(c, fencingBody)
    if (body instanceof Response) return body
    lab.confirmsPower = body.confirms
    return c.json(body)
  })
  app.post('/control/monitoring', async (c) => {
    const missing = missingServers()
    if (missing.length > 0) return problem(c, 422, describeMissing(missing))
    lab.monitoring ??= await startMonitoring(lab, receiver)
    return c.json(lab.monitoring, 201)
  })
  addDatabaseRoutes(app, lab, receiver)
  addClusterRoutes(app, lab, receiver)
  app.get('/control/devices', async (c) => c.json({ items: await devicesOf(lab) }))
  app.post('/control/devices/:id', async (c) => {
    const id = c.req.param('id')
    if (!lab.topology.nodes.some((each) => each.id === id)) return problem(c, 404, `there is no node ${id}`)
    const body = await bodyOf(c, enrolBody)
    if (body instanceof Response) return body
    return c.json(await enrolNode(lab, id, body.apiUrl, body.token), 201)
  })
  app.get('/control/oracle', async (c) => {
    const query = oracleQuery.safeParse(c.req.query())
    if (!query.success) return problem(c, 400, nameFaults(query.error))
    return c.json(await judge(lab, query.data.scenario, query.data.target ?? null))
  })
}

/** Runs a write call once per key. The response contains the outcome, even if the call `failed`. */
async function write(
  c: Context,
  journal: LabJournal,
  about: string,
  body: object,
  run: () => Promise<LabOutcome>,
): Promise<Response> {
  const key = idempotencyKey.safeParse(c.req.header('idempotency-key'))
  if (!key.success) return problem(c, 400, 'a write needs an Idempotency-Key of at most 512 characters')
  const record = await journal.once(key.data, about, `${c.req.method} ${c.req.path} ${JSON.stringify(body)}`, run)
  if (!record) return problem(c, 422, 'this Idempotency-Key was used for another request')
  return c.json(answerOf(record), record.status === 'running' ? 202 : 200)
}

function unknown(c: Context, lab: Lab, vm: string, hosts: string[]): Response | null {
  if (!lab.topology.vms.some(({ id }) => id === vm)) return problem(c, 404, `there is no VM ${vm}`)
  const missing = hosts.find((host) => !lab.topology.hosts.some(({ id }) => id === host))
  return missing ? problem(c, 422, `there is no host ${missing}`) : null
}

function done(detail: string, result: Record<string, unknown>, changed: string[]): LabOutcome {
  return { status: 'done', detail, result, changed }
}

function answerOf({ key, status, detail, result, changed }: EffectRecord): EffectAnswer {
  return { key, status, detail, result, changed }
}

function bearer(token: string): MiddlewareHandler {
  const expected = digest(`Bearer ${token}`)
  return async (c, next) => {
    // Compares digests, because a comparison in constant time needs values of equal length.
    if (timingSafeEqual(digest(c.req.header('authorization') ?? ''), expected)) return next()
    c.header('www-authenticate', 'Bearer')
    return problem(c, 401, 'this path needs a bearer token')
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** The controller: starts the lab, serves it on loopback, and stops its processes at the end. */
const settings = labSettings(process.env)
const log = pino({ name: 'lab' })

const lab = await startLab(settings.LAB_DIR, {
  webShards: settings.LAB_WEB_SHARDS,
  lagSeconds: settings.LAB_LAG_SECONDS,
  paceSeconds: settings.LAB_PACE_SECONDS,
})
const journal = openJournal(join(lab.dir, 'effects.jsonl'), (request) => outcomeOfRequest(lab, request))
const app = labApi({
  lab,
  journal,
  platformToken: settings.LAB_PLATFORM_TOKEN,
  controlToken: settings.LAB_CONTROL_TOKEN,
  receiver: { url: settings.ALERT_URL, token: settings.ALERT_TOKEN },
})
const prober = startProber(
  join(lab.dir, 'alerts.json'),
  settings.LAB_PROBE_INTERVAL_MS,
  async () => {
    await lab.breaking
    return [...conditionsIn(await lookAt(lab), lab.lagSeconds, watchedOnce(lab.faults)), ...(await wrongChecks(lab))]
  },
  postTo(settings.ALERT_URL, settings.ALERT_TOKEN),
  (error) => log.error({ err: error }, 'a round of the prober failed'),
)
// Keeps idle connections longer than busy clients do, so that the server never closes a connection
// during a client's request.
const serverOptions = { keepAliveTimeout: 75_000 }
const server = serve(
  {
    fetch: sayingNonce(app.fetch, process.env[nonceSetting]),
    hostname: '127.0.0.1',
    port: settings.LAB_PORT,
    serverOptions,
  },
  ({ port }) => {
    // Logs one line, for which the starting process waits.
    log.info({ port, account: lab.account ?? 'as started' }, 'the lab is ready')
  },
)

server.on('error', (error) => {
  log.fatal({ err: error }, `the lab cannot listen on port ${settings.LAB_PORT}`)
  void lab.children.stopAll().then(() => process.exit(1))
})

function removeServers(dir: string): void {
  removeDrawer(dir)
  removeCluster(dir)
}

let stopping = false
async function stop(signal: string): Promise<void> {
  if (stopping) return
  stopping = true
  log.info({ signal }, 'the lab is stopping')
  server.close()
  // Waits for a running write call, so that its outcome is recorded. Each has a time limit.
  await Promise.all([prober.stop(), journal.idle()])
  await Promise.all([lab.children.stopAll().then(() => removeServers(lab.dir)), lab.database?.stop()])
  process.exit(0)
}
process.on('SIGTERM', stop)
process.on('SIGINT', stop)

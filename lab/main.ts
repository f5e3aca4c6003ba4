import { join } from 'node:path'
import { serve } from '@hono/node-server'
import pino from 'pino'
import { nonceSetting, sayingNonce } from '../domain/start-nonce.ts'
import { labApi } from './api.ts'
import { conditionsIn, watchedOnce } from './conditions.ts'
import { openJournal, whatBecameOf } from './effects.ts'
import { labSettings, startLab } from './lab.ts'
import { lookAt } from './look.ts'
import { postTo, startProber } from './prober.ts'

/** The controller: starts the lab, serves it on loopback, and takes everything down with it. */
const settings = labSettings(process.env)
const log = pino({ name: 'lab' })

const lab = await startLab(settings.LAB_DIR, {
  webShards: settings.LAB_WEB_SHARDS,
  lagSeconds: settings.LAB_LAG_SECONDS,
  paceSeconds: settings.LAB_PACE_SECONDS,
})
const journal = openJournal(join(lab.dir, 'effects.jsonl'), (request) => whatBecameOf(lab, request))
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
    return conditionsIn(await lookAt(lab), lab.lagSeconds, watchedOnce(lab.faults))
  },
  postTo(settings.ALERT_URL, settings.ALERT_TOKEN),
  (error) => log.error({ err: error }, 'a round of the prober failed'),
)
// Longer than a busy client keeps a connection for its next request, so that none is used while it is being closed.
const serverOptions = { keepAliveTimeout: 75_000 }
const server = serve(
  {
    fetch: sayingNonce(app.fetch, process.env[nonceSetting]),
    hostname: '127.0.0.1',
    port: settings.LAB_PORT,
    serverOptions,
  },
  ({ port }) => {
    // The one line that who started this waits for.
    log.info({ port, account: lab.account ?? 'as started' }, 'the lab is ready')
  },
)

server.on('error', (error) => {
  log.fatal({ err: error }, `the lab cannot listen on port ${settings.LAB_PORT}`)
  void lab.children.stopAll().then(() => process.exit(1))
})

let stopping = false
async function stop(signal: string): Promise<void> {
  if (stopping) return
  stopping = true
  log.info({ signal }, 'the lab stops')
  server.close()
  // A write under way is finished, so that the journal tells the truth; no write takes longer than its own bounds.
  await Promise.all([prober.stop(), journal.idle()])
  await Promise.all([lab.children.stopAll(), lab.database?.stop()])
  process.exit(0)
}
process.on('SIGTERM', stop)
process.on('SIGINT', stop)

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { IncidentEvent } from '../domain/event.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import { startPostgres } from '../start/postgres.ts'
import { searchAttributes, startTemporal } from '../start/temporal.ts'
import { findTemporalCli } from '../start/temporal-cli.ts'
import { temporaryDirectory } from '../test/support/directory.ts'
import { startSpine } from '../test/support/spine.ts'
import { mostAtOnce, spanOf, twentyDisks } from '../test/support/twenty-disks.ts'
import { median, report } from './report.ts'

/**
 * Twenty incidents of one type, one of them with another cause: what followers cost against their leader. The model is the
 * runbook's rule table, so the tokens are synthetic: they show what a hint makes needless, not what a language model would say.
 */
export async function queue(): Promise<void> {
  const dir = temporaryDirectory().path
  const postgres = await startPostgres({ dir: join(dir, 'postgres'), durable: false })
  const cli = await findTemporalCli({ rootDir: fileURLToPath(new URL('..', import.meta.url)), env: process.env })
  const temporal = await startTemporal({
    cli: cli.path,
    dir: null,
    searchAttributes,
    logFile: join(dir, 'temporal.log'),
    env: process.env,
  })
  await migrateToLatest(postgres.url)
  const spine = await startSpine({
    parts: ['lab', 'runbook', 'api'],
    databaseUrl: postgres.url,
    temporalAddress: temporal.address,
    environment: { LAB_WEB_SHARDS: '20' },
  })
  const { odd, incidents, logs } = await twentyDisks(spine)
  await spine.stop()
  await Promise.all([temporal.stop(), postgres.stop()])
  rmSync(dir, { recursive: true, force: true })

  const of = (role: string) =>
    incidents.flatMap((incident, index) => (incident.role === role ? [logs[index] ?? []] : []))
  const followers = of('follower')
  const wrong = followers.filter((log, index) => {
    const incident = incidents.filter((candidate) => candidate.role === 'follower')[index]
    return incident?.resource?.id === odd && log.some((event) => event.kind === 'hint_confirmed')
  })
  const leaderTokens = median(of('leader').map(tokensOf))
  const followerTokens = median(followers.map(tokensOf))
  report('queue (synthetic: a rule table, not a language model)', {
    incidents: incidents.length,
    'leaders / followers': `${of('leader').length} / ${followers.length}`,
    'followers at work at once, most': mostAtOnce(followers.map(spanOf)),
    'tokens of a leader, median': leaderTokens,
    'tokens of a follower, median': followerTokens,
    'followers against leaders': Math.round((followerTokens / leaderTokens) * 100) / 100,
    'hints wrongly adopted (must be 0)': wrong.length,
    'all twenty, from first claim to last end (s)': Math.round(
      (Math.max(...logs.map((log) => spanOf(log).to)) - Math.min(...logs.map((log) => spanOf(log).from))) / 1000,
    ),
  })
}

function tokensOf(log: IncidentEvent[]): number {
  return log.reduce(
    (sum, event) =>
      event.kind === 'model_answered'
        ? sum + event.metadata.usage.promptTokens + event.metadata.usage.completionTokens
        : sum,
    0,
  )
}

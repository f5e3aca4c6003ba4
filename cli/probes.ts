import type { Connection } from '@temporalio/client'
import { connectionOptions, type TemporalSettings } from '../clients/temporal.ts'
import { defaultTaskQueue, lineTaskQueue, llmTaskQueue } from '../domain/step-key.ts'

/** Milliseconds after which a service that does not respond counts as down. */
const probeTimeoutMs = 3_000

type ProbeResult = { ok: boolean; detail: string }

/**
 * Checks whether an HTTP request succeeds. `detail` is the beginning of the response, or the
 * failure.
 */
export async function probeHttp(url: URL, headers: Record<string, string> = {}): Promise<ProbeResult> {
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(probeTimeoutMs) })
    const text = (await response.text()).slice(0, 2_000)
    return { ok: response.ok, detail: response.ok ? text : `it answered ${response.status}: ${text.slice(0, 300)}` }
  } catch (error) {
    return { ok: false, detail: describeError(error) }
  }
}

/**
 * Checks whether PostgreSQL accepts the connection, its version, and which of `migrations` are
 * missing.
 */
export async function probePostgres(url: string, migrations: string[]): Promise<ProbeResult & { lacks: string[] }> {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: probeTimeoutMs })
  // Ignores a connection that breaks after the result.
  client.on('error', () => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<{ version: string; migrated: string | null }>(
      "select current_setting('server_version') as version, to_regclass('kysely_migration')::text as migrated",
    )
    const done = rows[0]?.migrated ? await client.query<{ name: string }>('select name from kysely_migration') : null
    const names = new Set(done?.rows.map(({ name }) => name))
    return {
      ok: true,
      detail: `PostgreSQL ${rows[0]?.version}`,
      lacks: migrations.filter((name) => !names.has(name)),
    }
  } catch (error) {
    return { ok: false, detail: describeError(error), lacks: [] }
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Task queues that a worker polls, each with its type at Temporal: 1 workflows, 2 activities. */
const queues = [
  [defaultTaskQueue, 1],
  [llmTaskQueue(defaultTaskQueue), 2],
  [lineTaskQueue(defaultTaskQueue), 2],
] as const

/** Checks whether workers polled each task queue in the last 90 s. A long poll lasts 60 s. */
export async function probeWorkers(settings: TemporalSettings): Promise<ProbeResult> {
  let connection: Connection | undefined
  try {
    const temporal = await import('@temporalio/client')
    connection = await temporal.Connection.connect({ ...connectionOptions(settings), connectTimeout: probeTimeoutMs })
    const { namespace } = settings
    const since = Date.now() / 1000 - 90
    const countPollers = async (name: string, taskQueueType: 1 | 2) => {
      const { pollers } = await connection!.workflowService.describeTaskQueue({
        namespace,
        taskQueue: { name },
        taskQueueType,
      })
      return (pollers ?? []).filter(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) >= since).length
    }
    const counts = await connection.withDeadline(Date.now() + probeTimeoutMs, () =>
      Promise.all(queues.map(async ([name, type]) => [name, await countPollers(name, type)] as const)),
    )
    const detail = counts.map(([name, count]) => `${name}: ${count}`).join(', ')
    return { ok: counts.every(([, count]) => count > 0), detail: `workers of each task queue: ${detail}` }
  } catch (error) {
    return { ok: false, detail: describeError(error) }
  } finally {
    await connection?.close().catch(() => undefined)
  }
}

function describeError(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (!(cause instanceof Error)) return String(cause)
  return cause.name === 'TimeoutError'
    ? 'no answer'
    : cause.message || (cause as NodeJS.ErrnoException).code || cause.name
}

import { eventually } from '../../support/directory.ts'
import { ownDirectory, runAs, type SiteServer, startSiteServer } from './site-server.ts'

/** A streaming replica of a server, made by a copy of it. */
export async function startReplica(
  directory: string,
  primary: SiteServer,
  settings: readonly string[] = [],
): Promise<SiteServer> {
  const replica = await startSiteServer(directory, {
    settings,
    make(data) {
      ownDirectory(data)
      const from = ['--host', '127.0.0.1', '--port', String(primary.port), '--username', 'site']
      runAs('pg_basebackup', [...from, '--pgdata', data, '--write-recovery-conf', '--checkpoint', 'fast', '--no-sync'])
    },
  })
  await eventually(
    'the replica to receive',
    async () => (await replica.run(`select 1 from pg_stat_wal_receiver where status = 'streaming'`)).length > 0,
  )
  return replica
}

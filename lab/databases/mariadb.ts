import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../monitoring.ts'
import type { Lab } from '../state.ts'
import { programPath } from './programs.ts'
import { mariadbSchema, mariadbWork } from './schema.ts'
import { adminName, type DrawerPlace, type LabServer, runAsNode, type Secrets } from './server.ts'

/** Starts the primary with the shop in it, and a replica that replicates from the first GTID. */
export async function startMariadb(lab: Lab, place: DrawerPlace, secrets: Secrets): Promise<LabServer[]> {
  const [port, replicaPort] = [await freePort(), await freePort()]
  const { directory } = place
  const install = [
    '--no-defaults',
    `--datadir=${join(directory, 'maria-1')}`,
    '--auth-root-authentication-method=normal',
  ]
  await runAsNode(place, programPath('mariadb-install-db'), [...install, '--skip-test-db'])
  // Copies the first server's data with its owners. Both servers begin without a binary log.
  await runAsNode(place, '/bin/cp', ['-a', 'maria-1', 'maria-2'])
  const first = join(directory, 'maria-init.sql')
  const admin = `'${adminName}'@'127.0.0.1'`
  writeFileSync(
    first,
    `set sql_log_bin = 0;\ncreate or replace user ${admin} identified by '${secrets.admin}';\ngrant all on *.* to ${admin} with grant option;\ndelete from mysql.global_priv where user in ('root', '');\nflush privileges;\n`,
    { mode: 0o600 },
  )
  place.giveAway(first)
  const primary = serverOf('maria-1', 'primary', port)
  const replica = serverOf('maria-2', 'replica', replicaPort)
  await Promise.all([startServer(lab, place, primary, first), startServer(lab, place, replica, first)])
  await askMariadb(primary, secrets, [
    ...usersOf(secrets),
    ...mariadbSchema,
    'grant all on shop.* to shop_app@127.0.0.1',
  ])
  const follow = `change master to master_host = '127.0.0.1', master_port = ${port}, master_user = 'replicator', master_password = '${secrets.replicator}', master_use_gtid = slave_pos, master_connect_retry = 1`
  await askMariadb(replica, secrets, [follow, 'start slave'])
  await untilApplied(replica, primary, secrets)
  return [primary, replica]
}

const usersOf = (secrets: Secrets): string[] => [
  `create user shop_app@127.0.0.1 identified by '${secrets.app}'`,
  `create user replicator@127.0.0.1 identified by '${secrets.replicator}'`,
  'grant replication slave on *.* to replicator@127.0.0.1',
  `create user exporter@127.0.0.1 identified by '${secrets.exporter}'`,
  'grant process, replica monitor, binlog monitor, slave monitor on *.* to exporter@127.0.0.1',
  'grant select on performance_schema.* to exporter@127.0.0.1',
  `create user nightshift_read identified by '${secrets.read}'`,
  `create user nightshift_write identified by '${secrets.write}'`,
]

const serverOf = (name: 'maria-1' | 'maria-2', role: LabServer['role'], port: number): LabServer => ({
  name,
  kind: 'mysql',
  role,
  replicatesFrom: role === 'replica' ? 'maria-1' : null,
  port,
  url: `mysql://127.0.0.1:${port}/shop`,
  instance: `${name}:3306`,
})

async function startServer(lab: Lab, { directory }: DrawerPlace, server: LabServer, first: string): Promise<void> {
  const { name, role, port } = server
  const options = [
    `--datadir=${join(directory, name)}`,
    `--init-file=${first}`,
    `--socket=${name}.sock`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    '--skip-name-resolve',
    `--server-id=${role === 'primary' ? 1 : 2}`,
    `--report-host=${name}`,
    '--log-bin=binlog',
    '--binlog-format=ROW',
    '--gtid-strict-mode=ON',
    `--read-only=${role === 'replica' ? 'ON' : 'OFF'}`,
    '--skip-slave-start',
    '--innodb-buffer-pool-size=16M',
    '--innodb-log-file-size=8M',
    '--innodb-flush-log-at-trx-commit=0',
    '--sync-binlog=0',
    '--key-buffer-size=1M',
    '--max-connections=40',
    '--performance-schema=OFF',
  ]
  const spec = { program: programPath('mariadbd'), args: ['--no-defaults', ...options], port, signal: 'SIGKILL' }
  await lab.children.start(name, 'database.ts', directory, spec)
}

const run = promisify(execFile)
const decode: Record<string, string> = { t: '\t', n: '\n', '\\': '\\', '0': '\0' }

/**
 * Runs statements as the admin with MariaDB's own client, and returns the rows of all statements.
 */
export async function askMariadb(
  { port }: LabServer,
  { admin }: Secrets,
  statements: string[],
): Promise<Record<string, string>[]> {
  const args = ['--no-defaults', '-h127.0.0.1', `-P${port}`, `-u${adminName}`, '--batch', '-e', statements.join(';\n')]
  const env = { PATH: '/usr/bin:/bin', MYSQL_PWD: admin }
  const { stdout } = await run(programPath('mariadb'), args, { env, timeout: 30_000, maxBuffer: 16 * 1024 * 1024 })
  const [head, ...lines] = stdout.split('\n').filter((line) => line !== '')
  const names = head?.split('\t') ?? []
  return lines.map((line) => {
    const values = line
      .split('\t')
      .map((each) => each.replace(/\\([tn\\0])/g, (_, code: string) => decode[code] ?? code))
    return Object.fromEntries(names.map((name, n) => [name, values[n] ?? '']))
  })
}

/** Waits until the replica has applied all changes that its primary has made so far. */
export async function untilApplied(
  replica: LabServer,
  primary: LabServer,
  secrets: Secrets,
  seconds = 15,
): Promise<boolean> {
  const [row] = await askMariadb(primary, secrets, ['select @@gtid_binlog_pos as position'])
  const [waited] = await askMariadb(replica, secrets, [
    `select master_gtid_wait('${row?.position}', ${seconds}) as result`,
  ])
  return waited?.result === '0'
}

/** Starts a program of the shop that writes to the MariaDB primary. */
export async function startMariadbWork(lab: Lab, place: DrawerPlace, server: LabServer, secrets: Secrets) {
  const file = join(place.directory, 'maria-app.cnf')
  writeFileSync(file, `[client]\nuser=shop_app\npassword=${secrets.app}\nhost=127.0.0.1\nport=${server.port}\n`, {
    mode: 0o600,
  })
  place.giveAway(file)
  await lab.children.start('shop-maria', 'mariadb-load.ts', place.directory, {
    program: programPath('mariadb'),
    args: [`--defaults-file=${file}`, 'shop'],
    statements: mariadbWork,
    everyMs: 400,
  })
}

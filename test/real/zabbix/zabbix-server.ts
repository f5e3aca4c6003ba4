import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { unprivilegedAccount } from '../../../start/account.ts'
import { eventually, freePort } from '../../support/directory.ts'
import { type RealServer, startPostgresql } from '../databases/servers.ts'
import { findProgram, unpackedAt } from '../kinds.ts'

export type RealZabbix = {
  /** Sends a value of the host's item, as zabbix_sender does. */
  send(value: number): Promise<void>
  stop(): Promise<void>
}

const environment = {
  PATH: process.env.PATH,
  LD_LIBRARY_PATH: join(unpackedAt('zabbix'), `usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`),
}

export function zabbixVersion(): string {
  const said = execFileSync(findProgram('zabbix_server')!, ['-V'], { encoding: 'utf8', env: environment })
  return /(\d+\.\d+\.\d+)/.exec(said)?.[1] ?? 'of no version'
}

/**
 * The media type that docs/how-to/connect-senders.md has to be pasted: its parameters and its
 * script.
 */
export function pastedMediaType(): { parameters: [string, string][]; script: string } {
  const page = readFileSync(new URL('../../../docs/how-to/connect-senders.md', import.meta.url), 'utf8')
  const [part = ''] = /## Zabbix[\s\S]*?(?=\n## )/.exec(page) ?? []
  const parameters = [...part.matchAll(/^\| `(\w+)` \| `([^`]+)` \|$/gm)].map((row): [string, string] => [
    row[1]!,
    row[2]!,
  ])
  return { parameters, script: /```js\n([\s\S]*?)```/.exec(part)?.[1] ?? '' }
}

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

/**
 * One host with an item that is sent, a trigger on it, the media type, and an action that tells of
 * problems and of their ends.
 */
function site(url: string, token: string): string {
  const { parameters, script } = pastedMediaType()
  const given: Record<string, string> = { url, token }
  const values = parameters.map(
    ([name, value], at) => `(${9_900_900 + at}, 9900900, ${quoted(name)}, ${quoted(given[name] ?? value)})`,
  )
  return `
    insert into hosts (hostid, host, name, status) values (9900900, 'web-1', 'Web server 1', 0);
    insert into interface (interfaceid, hostid, main, type, useip, ip, dns, port) values (9900900, 9900900, 1, 1, 1, '10.0.0.1', '', '10050');
    insert into hosts_groups (hostgroupid, hostid, groupid) values (9900900, 9900900, 2);
    insert into items (itemid, type, hostid, name, key_, value_type, delay, params, description, posts, headers)
      values (9900900, 2, 9900900, 'Disk', 'disk', 3, '0', '', '', '', '');
    insert into item_rtdata (itemid) values (9900900);
    insert into triggers (triggerid, expression, description, event_name, priority, comments, opdata, url)
      values (9900900, '{9900900}>95', 'Disk is full', 'Disk /var is {ITEM.LASTVALUE1} % full', 4, 'The volume is nearly full.', 'Used: {ITEM.LASTVALUE1}', '');
    insert into functions (functionid, itemid, triggerid, name, parameter) values (9900900, 9900900, 9900900, 'last', '$');
    insert into trigger_tag (triggertagid, triggerid, tag, value) values (9900900, 9900900, 'component', 'storage');
    insert into media_type (mediatypeid, type, name, script, description) values (9900900, 4, 'Nightshift', ${quoted(script)}, '');
    insert into media_type_param (mediatype_paramid, mediatypeid, name, value) values ${values.join(', ')};
    insert into media_type_message (mediatype_messageid, mediatypeid, eventsource, recovery, subject, message)
      values (9900900, 9900900, 0, 0, 'Problem', 'Problem'), (9900901, 9900900, 0, 1, 'Resolved', 'Resolved');
    insert into media (mediaid, userid, mediatypeid, sendto, active, severity, period) values (9900900, 1, 9900900, 'nightshift', 0, 63, '1-7,00:00-24:00');
    insert into actions (actionid, name, eventsource, evaltype, status, esc_period) values (9900900, 'Tell', 0, 0, 0, '1h');
    insert into operations (operationid, actionid, operationtype, recovery) values (9900900, 9900900, 0, 0), (9900901, 9900900, 11, 1);
    insert into opmessage (operationid, default_msg, subject, message, mediatypeid) values (9900900, 1, '', '', 9900900), (9900901, 1, '', '', null);
    insert into opmessage_usr (opmessage_usrid, operationid, userid) values (9900900, 9900900, 1);`
}

/**
 * Debian's Zabbix server, unpacked and not installed, over a PostgreSQL of its own. It runs as
 * nobody in namespaces of processes and of shared memory, which end with it.
 */
export async function startZabbix(directory: string, door: { url: string; token: string }): Promise<RealZabbix> {
  const database = await startPostgresql(directory)
  try {
    fill(database, site(door.url, door.token))
    const zabbix = await startOver(directory, database)
    return {
      ...zabbix,
      async stop() {
        await zabbix.stop()
        await database.stop()
      },
    }
  } catch (error) {
    await database.stop()
    throw error
  }
}

function fill({ at }: RealServer, own: string): void {
  const [psql, server] = [findProgram('psql')!, at.slice(0, -2)]
  execFileSync(psql, [...at, '-q', '-c', 'create database zabbix'], { stdio: 'ignore' })
  const share = join(unpackedAt('zabbix'), 'usr/share/zabbix-server-pgsql')
  const parts = ['schema', 'images', 'data'].map((part) =>
    gunzipSync(readFileSync(join(share, `${part}.sql.gz`))).toString(),
  )
  for (const input of [...parts, own])
    execFileSync(psql, [...server, '-d', 'zabbix', '-q', '-1', '-v', 'ON_ERROR_STOP=1'], {
      input,
      stdio: ['pipe', 'ignore', 'pipe'],
    })
}

async function startOver(directory: string, database: RealServer): Promise<RealZabbix> {
  const port = await freePort()
  const own = join(directory, 'zabbix')
  mkdirSync(own)
  const account = unprivilegedAccount()
  if (account) chownSync(own, account.uid, account.gid)
  const file = join(own, 'server.conf')
  const settings = {
    ...{ LogFile: join(own, 'server.log'), PidFile: join(own, 'server.pid'), SocketDir: own, DebugLevel: 3 },
    ...{ DBHost: database.at[1], DBName: 'zabbix', DBUser: 'site', ListenIP: '127.0.0.1', ListenPort: port },
    ...{ CacheUpdateFrequency: 5, StartPollers: 1, StartTrappers: 1, StartAlerters: 1, StartEscalators: 1 },
    ...{ StartDiscoverers: 0, StartPingers: 0, StartHTTPPollers: 0, StartLLDProcessors: 1 },
  }
  writeFileSync(
    file,
    `${Object.entries(settings)
      .map(([name, value]) => `${name}=${value}`)
      .join('\n')}\n`,
  )
  const as = account
    ? ['setpriv', `--reuid=${account.uid}`, `--regid=${account.gid}`, '--clear-groups', '--pdeathsig=KILL']
    : []
  const apart = ['--mount', '--mount-proc', '--ipc', '--pid', '--fork', '--kill-child=KILL']
  const server = spawn('unshare', [...apart, ...as, findProgram('zabbix_server')!, '-f', '-c', file], {
    stdio: 'ignore',
    env: environment,
  })
  // The item is known once the server has read its configuration.
  await eventually('Zabbix to take a value', async () => (await sent(port, 10)).includes('processed: 1'))
  return {
    async send(value) {
      const answer = await sent(port, value)
      if (!answer.includes('processed: 1')) throw new Error(`Zabbix answered ${answer}`)
    },
    stop: () => ended(server),
  }
}

/** https://www.zabbix.com/documentation/current/en/manual/appendix/protocols/zabbix_sender */
async function sent(port: number, value: number): Promise<string> {
  const data = [{ host: 'web-1', key: 'disk', value: String(value) }]
  const body = Buffer.from(JSON.stringify({ request: 'sender data', data }))
  const header = Buffer.alloc(13)
  header.write('ZBXD\u0001')
  header.writeUInt32LE(body.length, 5)
  const pieces: Buffer[] = []
  try {
    const socket = createConnection({ port, host: '127.0.0.1' })
    socket.write(Buffer.concat([header, body]))
    for await (const piece of socket) pieces.push(piece as Buffer)
  } catch {
    return 'no connection'
  }
  return Buffer.concat(pieces).toString()
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await exit
}

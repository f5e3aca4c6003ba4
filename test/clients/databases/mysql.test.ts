import { afterAll, beforeAll, expect, test } from '@jest/globals'
import mysql from 'mysql2'
import { openSession } from '../../../clients/databases/sessions.ts'
import { isListening } from '../../../start/process.ts'
import { eventually, freePort } from '../../support/directory.ts'

/**
 * Servers of other years, which no package brings any more: the protocol is mysql2's own, the
 * versions are those that were seen.
 */
let port = 0
let version = ''
const server = mysql.createServer((connection) => {
  connection.on('error', () => undefined)
  connection.serverHandshake({
    protocolVersion: 10,
    serverVersion: version,
    connectionId: 7,
    statusFlags: 2,
    characterSet: 8,
    capabilityFlags: 0xff_f7_df,
  } as never)
  connection.on('query', (sql: string) => {
    if (/version\(\)/.test(sql)) {
      const columns = ['version', 'pid'].map((name) => ({ ...column, name, orgName: name }))
      ;(connection as never as Writer).writeTextResult([{ version, pid: 7 }], columns)
    }
  })
})
const column = {
  catalog: 'def',
  schema: '',
  table: '',
  orgTable: '',
  characterSet: 33,
  columnLength: 100,
  columnType: 253,
  type: 253,
  flags: 0,
  decimals: 0,
}
type Writer = { writeTextResult(rows: object[], columns: object[]): void }

beforeAll(async () => {
  port = await freePort()
  server.listen(port)
  await eventually('it to listen', () => isListening(port))
})
afterAll(() => server.close(() => undefined))

const open = (timeoutMs: number) =>
  openSession({
    dialect: 'mysql',
    host: '127.0.0.1',
    port,
    database: null,
    login: { user: 'nightshift_read', password: 'choose-one' },
    tls: 'off',
    ca: null,
    client: null,
    timeoutMs,
  })

test.each([
  ['5.6.24', 'MySQL 5.6.24'],
  ['5.5.5-10.3.39-MariaDB-log', 'MariaDB 5.5.5-10.3.39-MariaDB-log'],
])('a server of %s is refused as too old before its first query', async (given, said) => {
  version = given
  await expect(open(30_000)).rejects.toMatchObject({
    code: 'too_old',
    message: `${said}: MySQL 8.0 and MariaDB 10.5 are the oldest supported versions`,
  })
})

test('a server that sends its version and then nothing is abandoned at the time limit', async () => {
  version = '5.5.5-10.11.6-MariaDB'
  await expect(open(500)).rejects.toMatchObject({ code: 'timeout', message: 'it gave no complete response in time' })
})

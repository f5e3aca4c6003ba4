import { createServer } from 'node:http'
import pg from 'pg'
import { announce, readSpecAndSettle } from './program.ts'

/**
 * Runs a web node's report worker. The worker holds connections to the database, each in an open
 * transaction.
 */
const { url, size, name } = readSpecAndSettle<{ url: string; size: number; name: string }>()

for (let n = 0; n < size; n++) {
  const client = new pg.Client({ connectionString: url, application_name: name })
  client.on('error', () => process.exit(1))
  await client.connect()
  await client.query('begin')
}
announce(createServer((_, response) => response.end(`${size}\n`)))

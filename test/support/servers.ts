import { randomBytes } from 'node:crypto'
import pg from 'pg'

/** URL of the test run's PostgreSQL, as the owner of everything. The server starts when it is first asked for. */
function postgresUrl(): Promise<string> {
  return ask('postgres')
}

/** Address of the test run's Temporal development server: in memory, real time, the search attributes registered. */
export function temporalAddress(): Promise<string> {
  return ask('temporal')
}

/** Path of the server whose clock skips ahead, for `TestWorkflowEnvironment.createTimeSkipping`. */
export function timeSkippingServerPath(): Promise<string> {
  return ask('timeSkipping')
}

/** A database of its own for a test, migrated and empty. `drop` throws out what is still connected. */
export async function freshDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  return await createDatabase('nightshift_template')
}

/** The same without a schema, for tests that migrate by themselves. */
export async function emptyDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  return await createDatabase('template1')
}

async function createDatabase(template: string): Promise<{ url: string; drop(): Promise<void> }> {
  const server = await postgresUrl()
  const name = `test_${randomBytes(6).toString('hex')}`
  await execute(server, `create database ${name} template ${template}`)
  return {
    url: server.replace(/[^/]*$/, name),
    drop: () => execute(server, `drop database if exists ${name} with (force)`),
  }
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

async function ask(server: string): Promise<string> {
  const door = process.env.NIGHTSHIFT_TEST_SERVERS
  if (!door) throw new Error('The test servers are only there under jest: run "npm test -- <file>".')
  const response = await fetch(`${door}/${server}`)
  const answer = await response.text()
  if (!response.ok) throw new Error(`The test server ${server} did not start: ${answer}`)
  return answer
}

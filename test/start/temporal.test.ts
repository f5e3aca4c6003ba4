import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { Client, Connection } from '@temporalio/client'
import { searchAttributes, startTemporal, type Temporal } from '../../start/temporal.ts'
import { findTemporalCli } from '../../start/temporal-cli.ts'
import { temporaryDirectory } from '../support/directory.ts'

const rootDir = join(import.meta.dirname, '..', '..')
let directory: ReturnType<typeof temporaryDirectory>
const running: Temporal[] = []

beforeEach(() => {
  directory = temporaryDirectory()
})

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop(0)))
  directory.remove()
})

async function start(ports?: { frontend: number; ui: number }) {
  const { path: cli } = await findTemporalCli({ rootDir, env: process.env })
  const dir = join(directory.path, 'temporal')
  const logFile = join(directory.path, 'temporal.log')
  const server = await startTemporal({ cli, dir, ports, searchAttributes, logFile, env: process.env })
  running.push(server)
  return server
}

async function withClient<T>(address: string, use: (client: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address })
  return use(new Client({ connection })).finally(() => connection.close())
}

test('workflows survive a killed Temporal server', async () => {
  const first = await start()
  await withClient(first.address, (client) =>
    client.workflow.start('investigate', { workflowId: 'investigate:7', taskQueue: 'nobody' }),
  )
  await first.stop(0)
  const second = await start()
  const status = await withClient(second.address, (client) => client.workflow.getHandle('investigate:7').describe())
  expect(status.status.name).toBe('RUNNING')
})

test('ports in use are skipped, for the server and for its page', async () => {
  const others = [createServer().listen(0, '127.0.0.1'), createServer().listen(0, '127.0.0.1')]
  await Promise.all(others.map((other) => once(other, 'listening')))
  const [frontend, ui] = others.map((other) => (other.address() as { port: number }).port) as [number, number]
  try {
    const server = await start({ frontend, ui })
    expect(Number(server.address.split(':')[1])).toBeGreaterThan(frontend)
    expect(Number(new URL(server.uiUrl).port)).toBeGreaterThan(ui)
    expect((await fetch(server.uiUrl)).status).toBe(200)
  } finally {
    for (const other of others) other.close()
  }
})

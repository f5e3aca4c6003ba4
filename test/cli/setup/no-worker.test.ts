import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { Client, Connection } from '@temporalio/client'
import pino from 'pino'
import { temporalRuns } from '../../../effects/runs.ts'
import { registerNamespace, temporalAddress } from '../../support/broker.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { runCli, tokenFile, useServedApi } from '../../support/run-cli.ts'

// An API with a Temporal of its own for which no worker asks.
const place = temporaryDirectory()
const namespace = `idle-${randomBytes(4).toString('hex')}`
let address: string
let connection: Connection
const api = useServedApi(async () => {
  address = await temporalAddress()
  connection = await Connection.connect({ address })
  await registerNamespace(connection, namespace)
  return { runs: temporalRuns(new Client({ connection, namespace }), pino({ level: 'silent' })) }
})
afterAll(async () => {
  await connection.close()
  place.remove()
})

test('if no worker polls, the test alert reports this and how to start one, and no time limit', async () => {
  const answers = join(place.path, 'answers')
  const lines = {
    LLM_BASE_URL: 'none',
    DATABASE_URL: api.url,
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    PUBLIC_URL: 'https://nightshift.example.com',
    PORT: new URL(api.apiUrl).port,
    BOOTSTRAP_ADMIN_TOKEN_FILE: tokenFile(api.tokens.admin),
    BOOTSTRAP_INGEST_TOKEN_FILE: tokenFile(api.tokens.ingest),
  }
  const text = Object.entries(lines).map(([name, value]) => `${name}='${value}'`)
  writeFileSync(answers, text.join('\n'), { mode: 0o600 })
  const words = ['setup', '--settings', join(place.path, 'site.env'), '--answers', answers, '--wait', '6']
  const { code, stdout, stderr } = await runCli(words)
  const flat = stdout.replaceAll(/\s+/g, ' ')
  expect(code).toBe(1)
  expect(stderr).toContain('No worker runs. Start a worker: "systemctl start nightshift-worker"')
  expect(flat).toContain('No worker runs. Start a worker: "systemctl start nightshift-worker"')
  expect(flat).not.toContain('give more time with --wait')
})

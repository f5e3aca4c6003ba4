import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Connection } from '@temporalio/client'
import { probeWorkers } from '../../cli/probes.ts'
import { registerNamespace, temporalAddress } from '../support/broker.ts'
import { eventually } from '../support/directory.ts'

const namespace = `probes-${randomBytes(4).toString('hex')}`
let address: string
let connection: Connection

beforeAll(async () => {
  address = await temporalAddress()
  connection = await Connection.connect({ address })
  await registerNamespace(connection, namespace)
})
afterAll(async () => {
  polls.abort()
  await connection.close()
})

const polls = new AbortController()

/** Polls queues as a worker does, until the test ends. */
function poll(kind: 'Workflow' | 'Activity', name: string): void {
  const request = { namespace, identity: 'a worker', taskQueue: { name } }
  const { workflowService: service } = connection
  const polled = connection.withDeadline(Date.now() + 60_000, () =>
    connection.withAbortSignal(
      polls.signal,
      async () =>
        await (kind === 'Workflow' ? service.pollWorkflowTaskQueue(request) : service.pollActivityTaskQueue(request)),
    ),
  )
  polled.catch(() => undefined)
}

test('a worker is there only if all its task queues are polled, and each queue without a worker is named', async () => {
  const probe = () => probeWorkers({ address, namespace, tls: false })
  poll('Workflow', 'nightshift')
  poll('Activity', 'nightshift-line')
  const lacking = 'workers of each task queue: nightshift: 1, nightshift-llm: 0, nightshift-line: 1'
  await eventually('two polled queues', async () => (await probe()).detail === lacking)
  expect((await probe()).ok).toBe(false)
  poll('Activity', 'nightshift-llm')
  await eventually('three polled queues', async () => (await probe()).ok)
})

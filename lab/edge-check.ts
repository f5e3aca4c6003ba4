import { connect } from 'node:net'
import { condition, type LabCondition } from './conditions.ts'
import type { Lab } from './state.ts'

/** The name of an outside check whose wrong port makes it report a working service as down. */

const monitor = 'edge-check'
/** The port of the discard service, on which no node listens. */
const wrongPort = 9

/** Connects to the wrong port once for each false alarm, and returns the failures as alerts. */
export async function wrongChecks(lab: Lab): Promise<LabCondition[]> {
  const nodes = lab.faults.filter(({ fault }) => fault === 'false_alarm').map(({ on }) => on)
  const answers = await Promise.all([...new Set(nodes)].map(async (id) => ({ id, said: await ask(wrongPort) })))
  return answers.flatMap(({ id, said }) => {
    const plan = lab.topology.nodes.find((each) => each.id === id)
    if (!plan || said === null) return []
    const labels = { region: plan.region, shard: plan.shard, node: id, instance: id, monitor }
    return [
      condition('service_down', labels, `No answer from ${id}`, `${monitor} asks port ${wrongPort} of ${id}: ${said}`),
    ]
  })
}

/** Returns why nothing listens on this port; null if a service listens. */
function ask(port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: 1_000 })
    const end = (said: string | null) => {
      socket.destroy()
      resolve(said)
    }
    socket.once('connect', () => end(null))
    socket.once('timeout', () => end('no answer within 1 s'))
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
  })
}

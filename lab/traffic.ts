import { get } from 'node:http'
import type { Lab } from './state.ts'

export const webNodes = ({ topology }: Lab) => topology.nodes.filter(({ role }) => role === 'web')

/** Requests for each web node and tenant, so that there is something to count: half of them search. */
const everyMs = 250
/** Requests that a noisy tenant sends in addition in each round. */
const noisyRequests = 20

/** Runs until the lab ends. `onRound` is called before each round. */
export function startTraffic(lab: Lab, onRound: () => void): void {
  setInterval(() => {
    onRound()
    for (const { id, shard } of webNodes(lab)) {
      const port = lab.children.get(id)?.port
      if (port === undefined) continue
      const tenants = lab.topology.shards.find((each) => each.id === shard)?.tenants ?? []
      for (const tenant of tenants) for (const path of ['/', '/search?q=a']) request(port, path, tenant)
      const noisy = lab.faults.find((each) => each.fault === 'noisy_neighbour' && each.on === id)
      const tenant = tenants.at(-1)
      if (noisy && tenant) for (let n = 0; n < noisyRequests; n++) request(port, '/', tenant)
    }
  }, everyMs).unref()
}

/** What comes back is of no interest; a node that is down answers nothing. */
function request(port: number, path: string, host: string): void {
  const sent = get({ host: '127.0.0.1', port, path, agent: false, headers: { host }, timeout: 2_000 }, (answer) => {
    answer.resume()
    answer.on('error', () => undefined)
  })
  sent.on('timeout', () => sent.destroy())
  sent.on('error', () => undefined)
}

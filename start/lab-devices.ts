import { setTimeout as sleep } from 'node:timers/promises'
import type { labClient } from '../lab/client.ts'

type Lab = Pick<ReturnType<typeof labClient>, 'devices' | 'enrol'>

/**
 * Makes each lab node a device of the mesh, as an admin does for a real machine: registers the
 * device, gets a one-time token, and enrols the device. Skips nodes that both the lab and the core
 * API know as enrolled. Asks both, because the lab keeps its files when the core API's database is
 * removed. Returns how many devices were enrolled now. Throws the error of the core API or the lab.
 */
export async function enrolLab(apiUrl: string, adminToken: string, lab: Lab): Promise<number> {
  const known = await enrolledDevices(apiUrl, adminToken)
  const waiting = (await lab.devices()).filter(({ id, state }) => state === 'not enrolled' || !known.has(id))
  for (const { id, url, root } of waiting) {
    // Declares a simple check that every machine can run. It fails on a routes file without routes,
    // which is a mistake.
    const checks = [{ path: `${root}/site/routes.json`, argv: ['grep', '-c', 'routes', '{path}'] }]
    const terms = { capabilities: [], roots: [{ path: root, writable: true }], checks }
    await whenKnown(() => ask(apiUrl, adminToken, 'PUT', `/devices/${id}`, { url, mode: 'all', terms }))
    const { token } = (await ask(apiUrl, adminToken, 'POST', `/devices/${id}/enrolment`, {})) as { token: string }
    await lab.enrol(id, apiUrl, token)
    await ask(apiUrl, adminToken, 'POST', `/devices/${id}/health`, {})
  }
  return waiting.length
}

/** Lists the devices that the core API has enrolled or revoked. A revoked device stays revoked. */
async function enrolledDevices(apiUrl: string, adminToken: string): Promise<Set<string>> {
  const { items } = (await ask(apiUrl, adminToken, 'GET', '/devices')) as {
    items: { id: string; enrolledAt: string | null; revokedAt: string | null }[]
  }
  return new Set(items.filter((each) => each.enrolledAt !== null || each.revokedAt !== null).map(({ id }) => id))
}

const knownWithinMs = 20_000

const tryAgainMs = 250

/**
 * Repeats `work` while the core API does not know the resource, because a new core API may not have
 * read the lab's inventory yet.
 */
async function whenKnown<T>(work: () => Promise<T>): Promise<T> {
  const until = Date.now() + knownWithinMs
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (Date.now() > until || !(error instanceof Error && error.message.includes('NO_RESOURCE'))) throw error
      await sleep(tryAgainMs)
    }
  }
}

async function ask(apiUrl: string, token: string, method: string, path: string, body?: object): Promise<unknown> {
  const response = await fetch(`${apiUrl}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  })
  const text = await response.text()
  if (!response.ok)
    throw new Error(`the core API answered ${response.status} to ${method} ${path}: ${text.slice(0, 300)}`)
  return JSON.parse(text)
}

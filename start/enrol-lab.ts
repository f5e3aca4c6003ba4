import type { labClient } from '../lab/client.ts'

type Lab = Pick<ReturnType<typeof labClient>, 'devices' | 'enrol'>

/**
 * Makes each node of the lab a device of the mesh, as an admin does it for a real machine: made known, a one-time token, enrolled.
 * Those that are enrolled already are left alone. Answers how many were enrolled now; throws what the core API or the lab said.
 */
export async function enrolLab(apiUrl: string, adminToken: string, lab: Lab): Promise<number> {
  const waiting = (await lab.devices()).filter(({ state }) => state === 'not enrolled')
  for (const { id, url, root } of waiting) {
    // A simple one, which every machine has: routes without any are not what somebody wants.
    const checks = [{ path: `${root}/site/routes.json`, argv: ['grep', '-c', 'routes', '{path}'] }]
    const terms = { capabilities: [], roots: [{ path: root, writable: true }], checks }
    await ask(apiUrl, adminToken, 'PUT', `/devices/${id}`, { url, mode: 'all', terms })
    const { token } = (await ask(apiUrl, adminToken, 'POST', `/devices/${id}/enrolment`, {})) as { token: string }
    await lab.enrol(id, apiUrl, token)
    await ask(apiUrl, adminToken, 'POST', `/devices/${id}/health`, {})
  }
  return waiting.length
}

async function ask(apiUrl: string, token: string, method: string, path: string, body: object): Promise<unknown> {
  const response = await fetch(`${apiUrl}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  })
  const text = await response.text()
  if (!response.ok)
    throw new Error(`the core API answered ${response.status} to ${method} ${path}: ${text.slice(0, 300)}`)
  return JSON.parse(text)
}

import { expect } from '@jest/globals'
import type { Spine } from './spine.ts'

/** Waits until an incident is closed, and answers it. */
export const ended = (spine: Spine, id: string) =>
  spine.until(
    `the end of ${id}`,
    async () => {
      const incident = await spine.get<{ status: string; attempt: number }>(`/incidents/${id}`)
      return ['resolved', 'escalated'].includes(incident.status) && incident
    },
    150_000,
  )

/** What the lab truly did was done once, and what is stored fits its log. */
export async function expectNothingTwice(spine: Spine): Promise<void> {
  const effects = await spine.lab.effects()
  expect(effects.length).toBeGreaterThan(0)
  expect(new Set(effects.map(({ request }) => request)).size).toBe(effects.length)
  expect(effects.every(({ runs }) => runs === 1)).toBe(true)
  expect(await spine.get('/verify?limit=100')).toMatchObject({ differences: [] })
}

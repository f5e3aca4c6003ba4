import { z } from 'zod'
import { getStoredSetting, settingPath } from '../config/stored.ts'
import type { ApiClient } from '../core.ts'

const effectiveValues = z.looseObject({ items: z.array(z.looseObject({ name: z.string(), value: z.unknown() })) })

/**
 * Does some work while settings of one incident type have other values, and puts back what was in force before, also when the work
 * fails. `tell` hears both.
 */
export async function withShortTimes<T>(
  api: ApiClient,
  type: string,
  times: Record<string, number>,
  tell: (text: string) => void,
  work: () => Promise<T>,
): Promise<T> {
  const names = Object.keys(times)
  if (names.length === 0) return await work()
  const before = await readValuesInForce(api, type, names)
  await writeValues(api, type, times, 'a scenario of the lab')
  tell(`For this scenario: ${describeValues(type, times)}.`)
  try {
    return await work()
  } finally {
    await writeValues(api, type, before, 'the scenario of the lab is over')
    tell(`As before: ${describeValues(type, before)}.`)
  }
}

async function readValuesInForce(api: ApiClient, type: string, names: string[]): Promise<Record<string, number>> {
  const { items } = effectiveValues.parse(await api.get(`/api/v1/config/effective?type=${type}`))
  return Object.fromEntries(names.map((name) => [name, Number(items.find((item) => item.name === name)?.value)]))
}

async function writeValues(api: ApiClient, type: string, times: Record<string, number>, reason: string): Promise<void> {
  for (const [name, value] of Object.entries(times)) {
    const key = `${name}.${type}`
    const version = (await getStoredSetting(api, key))?.version ?? 0
    await api.put(settingPath(key), { value: String(value), reason }, { 'if-match': `"${version}"` })
  }
}

function describeValues(type: string, times: Record<string, number>): string {
  return Object.entries(times)
    .map(([name, value]) => `${name}.${type} is ${value} s`)
    .join(', ')
}

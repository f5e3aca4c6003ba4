import { expect, test } from '@jest/globals'
import { incidentExample } from '../../api/routes/examples.ts'
import type { ApiClient } from '../../cli/api.ts'
import { findIncident } from '../../cli/demo/play.ts'
import { withShortTimes } from '../../cli/lab/scripts.ts'
import type { Fault } from '../../lab/state.ts'

const at = (second: number) => new Date(Date.UTC(2026, 10, 22, 3, 0, second)).toISOString()
const node = 'node-web-osl-1a'
const fault = { fault: 'service_down', target: node, on: node, hosts: [], at: at(10) } as unknown as Fault

type Stored = {
  id: string
  /** Null: the incident names no resource, only its title does. */
  on?: string | null
  title?: string
  status?: string
  closedAt?: string | null
  alerts: string[]
}

/** An API that knows these incidents, newest first, each with the starts of its alerts. */
function apiWith(stored: Stored[]): ApiClient {
  const items = stored.map(({ id, on = node, title = 'Node down', status = 'open', closedAt = null }) => ({
    ...{ ...incidentExample, id, status, closedAt, type: 'service_down', title },
    resource: on === null ? null : { kind: 'node', id: on },
  }))
  const get = async (path: string) => {
    const about = stored.find(({ id }) => path.includes(`/${id}/surroundings`))
    if (about) return { alerts: about.alerts.map((startsAt) => ({ startsAt, status: 'firing' })) }
    expect(path).toContain('type=service_down')
    return { items, nextCursor: null }
  }
  return { url: 'http://api.test', get } as unknown as ApiClient
}

test.each<[string, Stored[], string]>([
  [
    'the one whose alert began after the fault, not a newer one of another place',
    [
      { id: 'inc_newer', on: 'node-web-ams-1a', alerts: [at(12)] },
      { id: 'inc_own', alerts: [at(11)] },
    ],
    'inc_own',
  ],
  [
    'an older one that its alert opened again, not a newer one of the same place that is closed',
    [
      { id: 'inc_closed', status: 'resolved', closedAt: at(5), alerts: [at(3)] },
      { id: 'inc_again', alerts: [at(1), at(11)] },
    ],
    'inc_again',
  ],
  [
    'the first of two with the same name that began after it',
    [
      { id: 'inc_second', alerts: [at(13)] },
      { id: 'inc_first', alerts: [at(11)] },
    ],
    'inc_first',
  ],
  [
    'the one whose title names the place, not one with a longer name',
    [
      { id: 'inc_own', on: null, title: `${node}: down`, alerts: [at(12)] },
      { id: 'inc_longer', on: null, title: `${node}-2 is down`, alerts: [at(11)] },
    ],
    'inc_own',
  ],
])('the incident of a fault is %s', async (_, stored, expected) => {
  expect((await findIncident(apiWith(stored), fault)).id).toBe(expected)
})

test('an alert that is only counted, on an incident that was handed over before, is said so at once', async () => {
  const stored = [{ id: 'inc_1', status: 'escalated', closedAt: at(5), alerts: [at(11)] }]
  await expect(findIncident(apiWith(stored), fault)).rejects.toThrow('its alert is only counted')
})

test('times that a scenario shortens are put back, and people hear of both, also when it fails', async () => {
  const values: Record<string, string> = {}
  const api = {
    async get(path: string) {
      if (path.includes('/effective')) return { items: [{ name: 'alert.settle', value: 900 }] }
      const key = decodeURIComponent(path.split('/').at(-1) as string)
      return { key, value: values[key] ?? null, version: 1, locked: false, problem: null }
    },
    async put(path: string, body: { value: string }) {
      values[decodeURIComponent(path.split('/').at(-1) as string)] = body.value
    },
  } as unknown as ApiClient
  const said: string[] = []
  const work = async () => {
    said.push(`it is ${values['alert.settle.service_down']}`)
    throw new Error('it failed')
  }
  const times = { 'alert.settle': 10 }
  await expect(withShortTimes(api, 'service_down', times, (text) => said.push(text), work)).rejects.toThrow('it failed')
  expect(said).toEqual([
    'For this scenario: alert.settle.service_down is 10 s.',
    'it is 10',
    'As before: alert.settle.service_down is 900 s.',
  ])
})

import { expect, test } from '@jest/globals'
import type { ListedIncident } from '../../domain/incident-detail.ts'
import { incidents } from '../../web/gallery/worst.ts'
import { countStatuses, type ListLine, sayOwners, toLines } from '../../web/list/lines.ts'

const [first] = incidents as [ListedIncident]
const made = (id: string, change: Partial<ListedIncident>): ListedIncident => ({ ...first, role: null, ...change, id })
const shown = (lines: ListLine[]) => lines.map(({ id, group, isSetIn }) => `${group ? '+' : isSetIn ? '-' : ''}${id}`)

const over = { status: 'resolved', closedAt: '2026-11-25T05:40:00Z' } as const
const anna = { id: 'usr_1', name: 'anna', since: '2026-11-25T05:40:00Z' }
const page = [
  made('a', { groupId: 'grp_2', createdAt: '2026-11-25T05:00:00Z', severity: 'info' }),
  made('b', { groupId: null }),
  made('c', { groupId: 'grp_3', ...over }),
  made('d', { groupId: 'grp_2', createdAt: '2026-11-25T04:00:00Z', role: 'leader', owner: anna, severity: 'warning' }),
  made('e', { groupId: 'grp_3', ...over }),
  made('f', { groupId: 'grp_4' }),
]

test('by cause a group is at the place of its newest incident, finished ones are folded, and a single one is no group', () => {
  const lines = toLines(page, 'cause')
  expect(shown(lines)).toEqual(['+grp_2', '-a', '-d', 'b', '+grp_3', 'f'])
  expect(lines[0]?.incident.id).toBe('d')
  expect(lines[0]?.group).toMatchObject({ severity: 'warning', since: '2026-11-25T04:00:00Z', leader: { id: 'd' } })
  expect(shown(toLines(page, 'cause', new Map([['grp_3', true]])))).toContain('-c')
  expect(shown(toLines(page, null))).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
})

test('without its leader on the page a group claims none, and one without a name says so', () => {
  expect(toLines([page[0], page[0]] as ListedIncident[], 'cause')[0]?.group?.leader).toBeNull()
  const unnamed = page.map((each) => ({ ...each, resource: null, alertName: null }))
  expect(toLines(unnamed, 'resource')[0]).toMatchObject({ id: 'resource-', incident: { resource: null } })
  expect(toLines(unnamed, 'alert')[0]).toMatchObject({ id: 'alert-', group: { members: unnamed } })
})

test('a group counts its states, shows what needs a person first, and who owns how many', () => {
  const [line] = toLines([...page, made('g', { status: 'escalated' })], 'resource')
  expect(line?.group && countStatuses(line.group)).toEqual([
    ['awaiting_approval', 4],
    ['escalated', 1],
    ['resolved', 2],
  ])
  expect(line?.group && sayOwners(line.group)).toBe('1 of 7')
})

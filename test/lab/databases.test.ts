import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { faultRows } from '../../cli/lab/endings.ts'
import { breakDatabase } from '../../lab/databases/break.ts'
import { databaseFaultRows, databaseFaults } from '../../lab/databases/faults.ts'
import { inOrderOfHealing } from '../../lab/databases/heal.ts'
import { databaseRules, exporterQueries } from '../../lab/databases/rules.ts'
import { type Fault, type Lab, readState } from '../../lab/state.ts'
import { topologyOf } from '../../lab/topology.ts'
import { temporaryDirectory } from '../support/directory.ts'

const rows = databaseFaults.map((name) => databaseFaultRows[name])

test('five faults of databases are repaired by a write and end so, and seven are for a person', () => {
  const count = (status: string) => databaseFaults.filter((name) => faultRows[name].ending.status === status).length
  expect([count('resolved'), count('escalated')]).toEqual([5, 7])
  expect(new Set(rows.flatMap(({ repairedBy }) => repairedBy))).toEqual(
    new Set(['cancel_query', 'terminate_session', 'drop_replication_slot', 'start_replica']),
  )
})

test('each fault has an alert among the rules, and each rule of our own series has a query', () => {
  const rules = databaseRules.groups.flatMap((group) => group.rules)
  expect(rows.map(({ alert }) => alert).filter((alert) => !rules.some((rule) => rule.alert === alert))).toEqual([])
  const series = Object.entries(exporterQueries).flatMap(([space, { metrics }]) =>
    metrics.flatMap((each) => Object.keys(each)).map((column) => `${space}_${column}`),
  )
  const ownSpaces = Object.keys(exporterQueries).join('|')
  const asked = rules.flatMap(({ expr }) => expr.match(new RegExp(`\\b(${ownSpaces})_\\w+`, 'g')) ?? [])
  expect(asked.filter((name) => !series.includes(name))).toEqual([])
})

test('an alert of a database becomes the type that its fault waits for', () => {
  expect(faultRows.db_slot_keeps_wal.alert).toBe('postgresql_unused_replication_slot')
  expect(faultRows.db_replica_stopped.alert).toBe('mysql_slave_sql_thread_not_running')
})

test('without a database a fault is refused with the command that starts one', async () => {
  await expect(breakDatabase({ drawer: null } as unknown as Lab, 'db_index_lost', 'pg-1')).rejects.toThrow(
    /nightshift lab --databases/,
  )
})

test('faults that hold locks are healed before faults that would wait for them', () => {
  const faults = ['db_index_lost', 'disk_pressure', 'db_idle_blocker'].map((fault) => ({ fault })) as Fault[]
  expect(inOrderOfHealing(faults).map(({ fault }) => fault)).toEqual([
    'db_idle_blocker',
    'db_index_lost',
    'disk_pressure',
  ])
})

test('the servers end with the lab, and so do their faults', () => {
  const place = temporaryDirectory()
  const fault = (name: string) => ({
    fault: name,
    target: 'x',
    on: 'x',
    at: '2026-11-27T00:00:00Z',
    files: [],
    counters: {},
    tenantData: {},
  })
  const kept = { placement: {}, linksDown: [], faults: [fault('service_down'), fault('db_index_lost')] }
  writeFileSync(join(place.path, 'state.json'), JSON.stringify(kept))
  expect(readState(place.path, topologyOf(1)).faults.map((each) => each.fault)).toEqual(['service_down'])
  place.remove()
})

import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { parseAllDocuments } from 'yaml'
import { clusterRights } from '../../domain/cluster-rights.ts'

type Rule = { apiGroups: string[]; resources: string[]; verbs: string[] }
const rolesOf = (text: string) =>
  parseAllDocuments(text)
    .map((each) => each.toJSON() as { kind: string; metadata: { namespace?: string }; rules?: Rule[] })
    .filter(({ rules }) => rules !== undefined)

test('the printed files are those that the package contains', () => {
  expect(readFileSync('examples/kubernetes/read-cluster.yaml', 'utf8')).toBe(clusterRights())
  expect(readFileSync('examples/kubernetes/read-namespaces.yaml', 'utf8')).toBe(clusterRights(['shop', 'payments']))
})

test('no role reads Secrets, writes, uses a wildcard, or impersonates', () => {
  const rules = [...rolesOf(clusterRights()), ...rolesOf(clusterRights(['shop']))].flatMap((role) => role.rules ?? [])
  expect(rules.length).toBeGreaterThan(8)
  const words = rules.flatMap(({ apiGroups, resources, verbs }) => [...apiGroups, ...resources, ...verbs])
  expect(words.filter((word) => /\*|secret|token|impersonate|exec|proxy|portforward|attach/.test(word))).toEqual([])
  expect([...new Set(rules.flatMap(({ verbs }) => verbs))].sort()).toEqual(['get', 'list', 'watch'])
})

test('a right to a namespace is a role in it, without rights to objects of the cluster', () => {
  const roles = rolesOf(clusterRights(['shop', 'pay']))
  expect(roles.map(({ kind, metadata }) => [kind, metadata.namespace])).toEqual([
    ['Role', 'shop'],
    ['Role', 'pay'],
  ])
  expect(JSON.stringify(roles)).not.toMatch(/"nodes"|"namespaces"/)
})

import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, test } from '@jest/globals'
import { sourceKinds } from '../../sources/kinds.ts'

const root = join(import.meta.dirname, '../..')
const product = readdirSync(root, { withFileTypes: true, recursive: true })
  .filter((each) => each.isFile() && each.name.endsWith('.ts'))
  .map((each) => relative(root, join(each.parentPath, each.name)))
  .filter((path) => !/^(?:node_modules|test|bench|\.)/.test(path))

test('a kind of source is a folder and a line, and only the list of kinds knows it', () => {
  const knows = product.filter((path) =>
    /from '[./\w]*(?:alertmanager\/source|prometheus\/source|logs\/stores|http\/source)\.ts'/.test(
      readFileSync(join(root, path), 'utf8'),
    ),
  )
  expect(knows).toEqual(['sources/kinds.ts'])
})

test('each kind says how it is connected, and what it has for the context and the inventory', () => {
  const has = [...sourceKinds.values()].map(({ kind, connect, contextOf = {}, listResources }) => [
    kind,
    typeof connect,
    [...Object.keys(contextOf), ...(listResources ? ['resources'] : [])].join(', '),
  ])
  expect(has).toEqual([
    ['prometheus', 'function', 'rule, resources'],
    ['alertmanager', 'function', ''],
    ['victorialogs', 'function', 'lines'],
    ['loki', 'function', 'lines'],
    ['http', 'function', ''],
    ['postgresql', 'function', 'database, resources'],
    ['mysql', 'function', 'database, resources'],
    ['kubernetes', 'function', 'cluster, resources'],
  ])
})

import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { platformOpenApi } from '../support/platform-openapi.ts'

const file = 'docs/reference/platform.openapi.json'

test('the published protocol equals the schemas (UPDATE=1 writes it)', () => {
  const document = `${JSON.stringify(platformOpenApi(), null, 2)}\n`
  if (process.env.UPDATE) writeFileSync(file, document)
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(JSON.parse(document))
})

test('every reference in the document leads to a schema', () => {
  const text = JSON.stringify(platformOpenApi())
  const { schemas } = (JSON.parse(text) as { components: { schemas: Record<string, unknown> } }).components
  const named = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, to]) => to!)
  expect(named.length).toBeGreaterThan(10)
  for (const to of named) expect([to, to.replace('#/components/schemas/', '') in schemas]).toEqual([to, true])
})

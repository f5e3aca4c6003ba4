import { expect, test } from '@jest/globals'
import { runCli } from './run-cli.ts'
import { useServedApi } from './served-api.ts'

const api = useServedApi()

test('a doctor without anything running says what to do, and fails', async () => {
  const { code, stdout } = await runCli(['doctor'])
  expect(code).toBe(1)
  expect(stdout).toContain('npm start')
})

test('a doctor names every setting that a start would refuse', async () => {
  const { stdout } = await runCli(['doctor', '--json'], { LLM_MAX_TURNS: 'many', PORT: '99999' })
  const found = JSON.parse(stdout).find((each: { name: string }) => each.name === 'Configuration')
  expect(found).toMatchObject({ ok: false, needed: true })
  expect(found.detail).toContain('LLM_MAX_TURNS')
  expect(found.detail).toContain('PORT')
})

test('a doctor finds what runs elsewhere, by its address', async () => {
  const { stdout } = await runCli(['doctor', '--json'], { ...api.as('admin'), DATABASE_URL: api.url })
  const found = Object.fromEntries(JSON.parse(stdout).map(({ name, ok }: { name: string; ok: boolean }) => [name, ok]))
  expect(found).toMatchObject({ API: true, Readiness: true, PostgreSQL: true, Migrations: true })
})

test('of a Nightshift elsewhere a doctor asks its API, and says nothing of what it cannot see from here', async () => {
  const { stdout, code } = await runCli(['doctor'], api.as('admin'))
  // Neither the rule table of a local start nor addresses that only the server has to know.
  expect(stdout).not.toMatch(/runbook|not known here|npm start/)
  expect(stdout).toMatch(/✔ Database\s+It answers\./)
  expect(stdout).toMatch(/✔ Platform\s+off: None is configured/)
  // Nothing runs workflows in this test.
  expect(stdout).toMatch(/Worker\s+(failed|unknown): /)
  expect(code).toBe(stdout.includes('✖') ? 1 : 0)
})

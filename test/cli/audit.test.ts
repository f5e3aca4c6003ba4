import { expect, test } from '@jest/globals'
import { recordAudit } from '../../db/audit.ts'
import { runCli } from './run-cli.ts'
import { useServedApi } from './served-api.ts'

const api = useServedApi()

test('who did what is listed and filtered, and text of others does nothing to the terminal', async () => {
  await recordAudit(api.db, { who: 'anna', what: 'token.minted', subject: 'tok_1', detail: 'Minted \u001b[2Jlaptop' })
  await recordAudit(api.db, { who: 'bob', what: 'sign_in.refused', subject: 'browser', detail: 'unknown token' })
  const run = (...args: string[]) => runCli(['audit', 'list', ...args], api.as('operator'))
  const [all, annas, refused, none, wrong, viewer] = await Promise.all([
    run(),
    run('--who', 'anna', '--json'),
    run('--what', 'sign_in'),
    run('--since', '2099-01-01'),
    run('--since', 'yesterday'),
    runCli(['audit', 'list'], api.as('viewer')),
  ])
  expect(all.stdout).toMatch(/bob +sign_in\.refused +browser[\s\S]*anna +token\.minted +tok_1/)
  expect(all.stdout).not.toContain('\u001b[2J')
  expect(JSON.parse(annas.stdout)).toMatchObject([{ who: 'anna', subject: 'tok_1' }])
  expect(refused.stdout).not.toContain('anna')
  expect([none.stderr, wrong.code, viewer.code]).toEqual(['Nothing.\n', 2, 4])
})

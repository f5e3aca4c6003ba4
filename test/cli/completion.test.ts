import { execFileSync } from 'node:child_process'
import { expect, test } from '@jest/globals'
import { runCli } from './run-cli.ts'

async function completed(words: string[]): Promise<string[]> {
  const { stdout } = await runCli(['completion', 'bash'])
  const script = `${stdout}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _nightshift; printf '%s\\n' "\${COMPREPLY[@]}"`
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n')
}

test('bash completes commands, what stands below them, and their options', async () => {
  expect(await completed(['nightshift', 'app'])).toEqual(['approvals'])
  expect(await completed(['nightshift', 'approvals', ''])).toEqual(
    expect.arrayContaining(['list', 'show', 'approve', 'deny', 'wait']),
  )
  expect(await completed(['nightshift', 'approvals', 'approve', 'apr_1', '--ed'])).toEqual(['--edit'])
  expect(await completed(['nightshift', 'config', 'set', '--rea'])).toEqual(['--reason'])
})

test('fish is offered the same words as bash', async () => {
  const { stdout } = await runCli(['completion', 'fish'])
  expect(stdout).toMatch(/^complete --command nightshift /m)
  for (const [, path, words] of (await runCli(['completion', 'bash'])).stdout.matchAll(
    /^ +'(.*)'\) words='(.*)' ;;$/gm,
  )) {
    expect(stdout).toContain(`case '${path}'\n                set words ${words}\n`)
  }
})

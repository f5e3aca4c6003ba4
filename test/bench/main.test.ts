import { spawnSync } from 'node:child_process'
import { expect, test } from '@jest/globals'

test('every benchmark starts without the test runner', () => {
  const { status, stderr } = spawnSync(process.execPath, ['bench/main.ts', 'no-such-bench'], { encoding: 'utf8' })
  expect([status, stderr]).toEqual([
    2,
    expect.stringContaining('There is no bench no-such-bench. Use: npm run bench -- turn|'),
  ])
})

import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { type ConfigError, readConfig } from '../config.ts'

function problems(environment: Record<string, string>, requires: Parameters<typeof readConfig>[1] = []): string[] {
  try {
    readConfig(environment, requires)
    return []
  } catch (error) {
    return (error as ConfigError).problems
  }
}

test('everything that is wrong is said at once, each naming its setting', () => {
  const found = problems(
    {
      AGENT_ENABLED: 'true',
      QUEUE_INTERVAL_SECONDS: 'soon',
      PORT: '99999',
      CORE_API_URL: 'ftp://x',
      LLM_PROTOCOL: 'smoke',
    },
    ['DATABASE_URL'],
  )
  for (const name of [
    'LLM_BASE_URL',
    'AGENT_API_KEY',
    'QUEUE_INTERVAL_SECONDS',
    'PORT',
    'CORE_API_URL',
    'LLM_PROTOCOL',
    'DATABASE_URL',
  ]) {
    expect(found.filter((problem) => problem.includes(name))).toHaveLength(1)
  }
})

test('the agent is off by default and needs a model and a key only when it is on', () => {
  expect(readConfig({}).AGENT_ENABLED).toBe(false)
  expect(problems({ AGENT_ENABLED: 'true' })).toHaveLength(2)
  expect(problems({ AGENT_ENABLED: 'true', LLM_BASE_URL: 'http://dgx:8000', AGENT_API_KEY: 'k' })).toEqual([])
})

test('the defaults are those the documentation promises', () => {
  expect(readConfig({})).toMatchObject({
    AGENT_MAX_CONCURRENT: 3,
    AGENT_FOLLOWER_CONCURRENT: 5,
    LLM_MODEL: 'Qwen/Qwen2.5-72B-Instruct',
    LLM_MAX_TURNS: 10,
    LLM_PROTOCOL: 'native',
    LLM_TEMPERATURE: 0.1,
    QUEUE_INTERVAL_SECONDS: 60,
  })
})

test('a secret may come from a file, but not from two places', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'nightshift-')), 'key')
  writeFileSync(file, 's3cret\n')
  expect(readConfig({ AGENT_API_KEY_FILE: file }).AGENT_API_KEY).toBe('s3cret')
  expect(problems({ AGENT_API_KEY_FILE: file, AGENT_API_KEY: 'x' })[0]).toContain('AGENT_API_KEY_FILE')
  expect(problems({ AGENT_API_KEY_FILE: '/nowhere' })[0]).toContain('/nowhere')
})

test('no message repeats the value of a secret', () => {
  const found = problems({ DATABASE_URL: 'mysql://root:hunter2@db/x', PORT: 'x' })
  expect(found.join()).not.toContain('hunter2')
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from '@jest/globals'
import { createToken } from '../../db/access/tokens.ts'
import { useDatabase } from '../support/database.ts'
import { compileCache, eventually, freePort } from '../support/directory.ts'

const database = useDatabase()

test('the API starts and accepts alerts while Temporal is down, and stops within five seconds of SIGTERM', async () => {
  const ingest = await createToken(database.db, { name: 'ingest', role: 'ingest', operatorId: null })
  const agent = await createToken(database.db, { name: 'agent', role: 'agent', operatorId: null })
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const child = spawn(process.execPath, ['api/main.ts'], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: compileCache,
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: `127.0.0.1:${await freePort()}`,
      PORT: String(port),
      LOG_LEVEL: 'warn',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  child.stdout.on('data', (bytes) => {
    log += bytes
  })
  child.stderr.on('data', (bytes) => {
    log += bytes
  })
  try {
    await eventually('it to be ready', async () => (await fetch(`${url}/readyz`).catch(() => null))?.status === 200)
    const ready = await fetch(`${url}/readyz`)
    expect(await ready.json()).toMatchObject({
      status: 'ok',
      checks: { temporal: { status: 'failed', required: false } },
    })

    const taken = await fetch(`${url}/api/v1/ingest/generic`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ingest}`, 'content-type': 'application/json' },
      body: JSON.stringify({ title: 'Backup failed' }),
    })
    expect(taken.status).toBe(202)

    const stream = await fetch(`${url}/api/v1/stream`, { headers: { authorization: `Bearer ${agent}` } })
    expect(stream.headers.get('x-accel-buffering')).toBe('no')
    const reading = stream.text()
    child.kill('SIGTERM')
    const [code] = await once(child, 'exit')
    expect(code).toBe(0)
    expect(await reading).toContain('retry: 3000')
    expect(log).not.toContain(ingest)
  } finally {
    child.kill('SIGKILL')
  }
})

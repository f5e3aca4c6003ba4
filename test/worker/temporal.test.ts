import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { temporalAddress } from '../support/broker.ts'
import { compileCache, freePort, temporaryDirectory } from '../support/directory.ts'
import { startSpine } from '../support/spine.ts'
import { newAuthority, startTemporalProxy } from '../support/temporal-proxy.ts'

test('behind TLS, a client certificate and a key the API and the worker work, and a worker without the authority says why', async () => {
  const directory = temporaryDirectory()
  const authority = await newAuthority('The site’s authority')
  const own = await authority.issue({ dns: ['nightshift'] })
  const file = (name: string, text: string) => {
    writeFileSync(join(directory.path, name), text, { mode: 0o600 })
    return join(directory.path, name)
  }
  const proxy = await startTemporalProxy(await temporalAddress(), {
    pair: await authority.issue({ dns: ['localhost'] }),
    clientAuthority: authority.certificate,
    apiKey: 'key-of-the-site',
  })
  const toml = [
    '[profile.site]',
    `address = "localhost:${proxy.port}"`,
    '[profile.site.tls]',
    `server_ca_cert_path = "${file('ca.pem', authority.certificate)}"`,
    `client_cert_path = "${file('own.pem', own.certificate)}"`,
    `client_key_path = "${file('own.key', own.key)}"`,
  ]
  const environment = {
    // Empty is not set: the profile says where.
    TEMPORAL_ADDRESS: '',
    TEMPORAL_CONFIG_FILE: file('temporal.toml', toml.join('\n')),
    TEMPORAL_PROFILE: 'site',
    TEMPORAL_API_KEY_FILE: file('api.key', 'key-of-the-site\n'),
  }
  const spine = await startSpine({ parts: ['api'], environment })
  try {
    const other = file('other.pem', (await newAuthority('Other')).certificate)
    const distrusting = {
      ...environment,
      DATABASE_URL: spine.databaseUrl,
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: other,
      // A Nightshift that runs on this machine has the usual one.
      WORKER_PORT: String(await freePort()),
    }
    const { code, printed } = await endOf('worker/main.ts', distrusting)
    expect(code).toBe(1)
    expect(printed).toContain('which TEMPORAL_TLS_SERVER_CA_CERT_PATH does not contain')
    await spine.start('worker')
    const { checks } = (await (await fetch(`${spine.url}/readyz`)).json()) as { checks: Record<string, unknown> }
    expect(checks.temporal).toMatchObject({ status: 'ok' })
    await spine.post('/ingest/generic', { title: 'Backup failed' }, { token: spine.tokens.ingest })
    await spine.until('the incident to be claimed', async () => (await spine.incidents())[0]?.status !== 'open')
    expect(spine.printed()).not.toContain('key-of-the-site')
  } finally {
    await spine.stop()
    await proxy.stop()
  }
})

async function endOf(entry: string, env: Record<string, string>): Promise<{ code: number; printed: string }> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', entry], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCache, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  child.stdout.on('data', (bytes) => {
    printed += bytes
  })
  const [code] = await once(child, 'close')
  return { code, printed }
}

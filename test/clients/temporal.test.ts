import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Connection } from '@temporalio/client'
import { NativeConnection } from '@temporalio/worker'
import { connectionOptions, troubleWith } from '../../clients/temporal.ts'
import { readConfig, temporalSettings } from '../../config/settings.ts'
import { temporalAddress } from '../support/broker.ts'
import { freePort } from '../support/directory.ts'
import { installRuntime } from '../support/temporal.ts'
import {
  type Authority,
  newAuthority,
  type Pair,
  startTemporalProxy,
  type TemporalProxy,
} from '../support/temporal-proxy.ts'

// A real server behind a proxy that ends TLS, as others run it; each case through both clients of
// the SDK, whose TLS is not the same.
const key = 'temporal-key-of-a-test'
const proxies: Record<string, TemporalProxy> = {}
let authority: Authority
let stranger: Authority
let own: Pair
let expired: Pair

beforeAll(async () => {
  installRuntime()
  authority = await newAuthority('The site’s authority')
  stranger = await newAuthority('Somebody else')
  const good = await authority.issue({ dns: ['localhost'], ip: ['127.0.0.1'] })
  own = await authority.issue({ dns: ['nightshift'] })
  expired = await authority.issue({ dns: ['nightshift'], expired: true })
  const target = await temporalAddress()
  const start = async (name: string, options: Parameters<typeof startTemporalProxy>[1]) => {
    proxies[name] = await startTemporalProxy(target, options)
  }
  await start('tls', { pair: good })
  await start('expired', { pair: await authority.issue({ dns: ['localhost'], expired: true }) })
  await start('elsewhere', { pair: await authority.issue({ dns: ['temporal.example.com'] }) })
  await start('mtls', { pair: good, clientAuthority: authority.certificate })
  await start('key', { pair: good, apiKey: key })
})
afterAll(async () => {
  await Promise.all(Object.values(proxies).map((proxy) => proxy.stop()))
})

type Variables = Record<string, string>
const at = (proxy: string): Variables => ({ TEMPORAL_ADDRESS: `localhost:${proxies[proxy]?.port}` })
const trusting = (by = authority): Variables => ({ TEMPORAL_TLS_SERVER_CA_CERT_DATA: by.certificate })
const with_ = ({ certificate, key }: Pair): Variables => ({
  TEMPORAL_TLS_CLIENT_CERT_DATA: certificate,
  TEMPORAL_TLS_CLIENT_KEY_DATA: key,
})
const settingsOf = (variables: Variables) => temporalSettings(readConfig(variables))

/** Which of the two clients get through to the namespace. */
async function through(variables: Variables): Promise<{ client: boolean; worker: boolean }> {
  const settings = settingsOf(variables)
  const { namespace } = settings
  const options = connectionOptions(settings)
  const asked = async (connect: () => Promise<Connection | NativeConnection>) => {
    let connection: Connection | NativeConnection | undefined
    try {
      connection = await connect()
      await connection.workflowService.describeNamespace({ namespace })
      return true
    } catch {
      return false
    } finally {
      await connection?.close()
    }
  }
  return {
    client: await asked(() => Connection.connect({ ...options, connectTimeout: 1_500 })),
    worker: await asked(() => NativeConnection.connect(options)),
  }
}

test('with the authority, the certificate and the key of a site, client and worker connect', async () => {
  const ways: [string, Variables][] = [
    ['tls', { ...at('tls'), ...trusting() }],
    ['by number', { TEMPORAL_ADDRESS: `127.0.0.1:${proxies.tls?.port}`, ...trusting() }],
    ['other name', { ...at('elsewhere'), ...trusting(), TEMPORAL_TLS_SERVER_NAME: 'temporal.example.com' }],
    ['mtls', { ...at('mtls'), ...trusting(), ...with_(own) }],
    ['key', { ...at('key'), ...trusting(), TEMPORAL_API_KEY: key }],
  ]
  for (const [name, variables] of ways) {
    expect([name, await troubleWith(settingsOf(variables))]).toEqual([name, null])
    expect([name, await through(variables)]).toEqual([name, { client: true, worker: true }])
  }
})

test('a client and a worker that a site refuses do not connect, and the error names the cause and the setting', async () => {
  const refusals: [Variables, RegExp, RegExp][] = [
    [{ ...at('tls'), TEMPORAL_TLS: 'true' }, /authority, which this machine does not trust/, /SERVER_CA_CERT_PATH/],
    [{ ...at('tls'), ...trusting(stranger) }, /CA_CERT_PATH does not contain/, /SERVER_CA_CERT_PATH/],
    [{ ...at('tls') }, /uses TLS, but Nightshift does not/, /TEMPORAL_TLS=true/],
    [{ ...at('expired'), ...trusting() }, /is valid from .* to .*, and not now/, /Renew the certificate of the server/],
    [{ ...at('elsewhere'), ...trusting() }, /another name: DNS:temporal\.example\.com/, /TEMPORAL_TLS_SERVER_NAME/],
    [{ ...at('mtls'), ...trusting() }, /requires a client certificate/, /TEMPORAL_TLS_CLIENT_CERT_PATH/],
    [
      { ...at('mtls'), ...trusting(), ...with_(expired) },
      /refused the client certificate .* valid to/,
      /CLIENT_KEY_PATH/,
    ],
    [{ ...at('key'), ...trusting() }, /asks for a key or a certificate/, /TEMPORAL_API_KEY/],
    [
      { ...at('key'), ...trusting(), TEMPORAL_API_KEY: 'revoked' },
      /refuses the key .*unauthorized/,
      /TEMPORAL_API_KEY/,
    ],
    [
      { ...at('tls'), ...trusting(), TEMPORAL_NAMESPACE: 'nobody-made' },
      /no namespace "nobody-made"/,
      /namespace create/,
    ],
    [{ TEMPORAL_ADDRESS: await temporalAddress(), TEMPORAL_TLS: 'true' }, /does not use TLS/, /TEMPORAL_TLS=false/],
    [{ TEMPORAL_ADDRESS: `127.0.0.1:${await freePort()}` }, /Nothing listens at/, /TEMPORAL_ADDRESS/],
  ]
  for (const [variables, what, remedy] of refusals) {
    const trouble = await troubleWith(settingsOf(variables))
    expect(trouble).toMatchObject({ what: expect.stringMatching(what), remedy: expect.stringMatching(remedy) })
    expect(JSON.stringify(trouble)).not.toContain('revoked"')
  }
  const told = await Promise.all(refusals.map(([variables]) => through(variables)))
  expect(told).toEqual(refusals.map(() => ({ client: false, worker: false })))
})

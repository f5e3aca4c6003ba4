import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Client, Connection } from '@temporalio/client'
import { queueScheduleId } from '../../../domain/step-key.ts'
import { searchAttributeFaults } from '../../../worker/search-attributes.ts'
import { registerNamespace, temporalAddress } from '../../support/broker.ts'
import { runCli } from '../../support/run-cli.ts'
import { newAuthority, startTemporalProxy, type TemporalProxy } from '../../support/temporal-proxy.ts'

// A namespace that somebody else made and nobody has used, behind TLS and a key.
const namespace = `setup-${randomBytes(4).toString('hex')}`
let connection: Connection
let proxies: TemporalProxy[]
let behindTls: Record<string, string>
let inCloud: Record<string, string>

beforeAll(async () => {
  const address = await temporalAddress()
  connection = await Connection.connect({ address })
  await registerNamespace(connection, namespace)
  const authority = await newAuthority('Site')
  const pair = await authority.issue({ dns: ['localhost'] })
  const apiKey = 'key-of-the-site'
  proxies = [
    await startTemporalProxy(address, { pair, apiKey }),
    await startTemporalProxy(address, { pair, apiKey, closedService: 'OperatorService' }),
  ]
  const [first, second] = proxies.map(({ port }) => ({
    TEMPORAL_ADDRESS: `localhost:${port}`,
    TEMPORAL_NAMESPACE: namespace,
    TEMPORAL_API_KEY: apiKey,
    TEMPORAL_TLS_SERVER_CA_CERT_DATA: authority.certificate,
  }))
  behindTls = first as Record<string, string>
  inCloud = second as Record<string, string>
})
afterAll(async () => {
  await new Client({ connection, namespace }).schedule.getHandle(queueScheduleId).delete()
  await Promise.all(proxies.map((proxy) => proxy.stop()))
  await connection.close()
})

const states = (stdout: string) => (JSON.parse(stdout) as { rows: { state: string }[] }).rows.map(({ state }) => state)

test('a namespace is set up once, a dry run changes nothing, and a second setup finds nothing to do', async () => {
  const before = await runCli(['setup', 'temporal', '--dry-run', '--json'], behindTls)
  expect([before.code, states(before.stdout)]).toEqual([0, ['there', 'would be made', 'would be made']])
  expect((await searchAttributeFaults(connection, namespace)).missing).toHaveLength(5)

  // Nobody may make them there, and the command says who can and how.
  const refused = await runCli(['setup', 'temporal', '--json'], inCloud)
  expect([refused.code, states(refused.stdout)]).toEqual([1, ['there', 'failed', 'made']])
  expect(refused.stdout).toContain('tcld namespace search-attributes add')

  const made = await runCli(['setup', 'temporal', '--json'], behindTls)
  expect([made.code, states(made.stdout)]).toEqual([0, ['there', 'made', 'there']])
  const again = await runCli(['setup', 'temporal'], behindTls)
  expect([again.code, again.stderr.trim()]).toEqual([0, 'Nothing to do.'])
  expect(again.stdout).toContain(`${namespace} at localhost:`)
  // The made thing is seen there too, although nobody lets us ask.
  const seen = await runCli(['setup', 'temporal', '--json'], inCloud)
  expect([seen.code, states(seen.stdout)]).toEqual([0, ['there', 'there', 'there']])
})

test('a missing namespace is not created, and the command prints how to create it', async () => {
  const { code, stderr } = await runCli(['setup', 'temporal'], { ...behindTls, TEMPORAL_NAMESPACE: 'nobody-made' })
  expect(code).toBe(1)
  expect(stderr).toContain('temporal operator namespace create --namespace nobody-made')
})

test('doctor reports whether a Temporal behind TLS answers, and the error if not', async () => {
  const temporalOf = async (env: Record<string, string>) => {
    const { stdout } = await runCli(['doctor', '--json'], env)
    return JSON.parse(stdout).find((each: { name: string }) => each.name === 'Temporal')
  }
  expect(await temporalOf(behindTls)).toMatchObject({ ok: true, detail: expect.stringContaining(namespace) })
  const other = (await newAuthority('Other')).certificate
  expect(await temporalOf({ ...behindTls, TEMPORAL_TLS_SERVER_CA_CERT_DATA: other })).toMatchObject({
    ok: false,
    remedy: expect.stringContaining('TEMPORAL_TLS_SERVER_CA_CERT_PATH'),
  })
})

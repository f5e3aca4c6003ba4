import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { incidentById } from '../../../db/incidents/incidents.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { useServedApi } from '../../support/run-cli.ts'
import { note } from '../facts.ts'
import { whyNot } from '../kinds.ts'
import { type RealZabbix, startZabbix, zabbixVersion } from './zabbix-server.ts'

const lacking = whyNot('zabbix')

;(lacking ? describe.skip : describe)(`a real Zabbix server${lacking ? ` (${lacking})` : ''}`, () => {
  const place = temporaryDirectory()
  const api = useServedApi()
  let zabbix: RealZabbix
  beforeAll(async () => {
    await sql`insert into platform_config (key, value) values ('alert.quiet', '0')`.execute(api.db)
    const began = performance.now()
    zabbix = await startZabbix(place.path, { url: `${api.apiUrl}/api/v1/ingest/zabbix`, token: api.tokens.ingest })
    note('zabbix_server', zabbixVersion())
    note('Zabbix ready in', `${((performance.now() - began) / 1000).toFixed(1)} s`)
  })
  afterAll(async () => {
    await zabbix?.stop()
    place.remove()
  })

  const alerts = async () => await api.db.selectFrom('alert').selectAll().orderBy('firstSeenAt').execute()

  test('the media type of the page opens an incident, and its recovery ends it', async () => {
    await zabbix.send(96)
    const began = performance.now()
    await eventually('the problem to come in', async () => (await alerts()).length === 1)
    note('a problem came in after', `${((performance.now() - began) / 1000).toFixed(1)} s`)
    const [fired] = await alerts()
    expect(fired).toMatchObject({
      source: 'zabbix',
      status: 'firing',
      fingerprint: 'trigger 9900900',
      name: 'Disk is full',
      labels: { host: 'web-1', host_ip: '10.0.0.1', host_group: 'Linux servers', component: 'storage' },
      annotations: { description: 'Used: 96' },
      stateWord: null,
      raw: { title: 'Disk /var is 96 % full (web-1)', severity: 'critical', timeNotes: [] },
    })
    expect(await incidentById(api.db, fired?.incidentId ?? '')).toMatchObject({ status: 'open', severity: 'critical' })
    await zabbix.send(40)
    await eventually('the recovery to come in', async () => (await alerts())[0]?.status === 'resolved')
    expect(await incidentById(api.db, fired?.incidentId ?? '')).toMatchObject({ status: 'resolved' })
    expect(await api.db.selectFrom('refusedBody').selectAll().execute()).toEqual([])
  })
})

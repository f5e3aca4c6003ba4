import { expect, test } from '@jest/globals'
import { declareModels } from '../../../db/models/declared-models.ts'
import { runCli, useServedApi } from '../../support/run-cli.ts'

const api = useServedApi()

const run = (...words: string[]) => runCli(['model', ...words], api.as('admin'))

async function inForce(type: string): Promise<Record<string, unknown>> {
  const { body } = await api.get(`/config/effective?type=${type}`)
  const items = body.items as unknown as { name: string; value: unknown }[]
  return Object.fromEntries(
    items.filter(({ name }) => name.startsWith('agent.model')).map((each) => [each.name, each.value]),
  )
}

test('runs of one type move to another model, and back to the state without a setting', async () => {
  const server = 'http://10.0.0.7:8000/v1'
  await declareModels(api.db, [
    { name: 'default', server, model: 'qwen-72b', fallbacks: [], protocol: 'native' },
    { name: 'small', server, model: 'qwen-8b', fallbacks: [], protocol: 'native' },
  ])
  const used = await run('use', 'small', '--type', 'replication_lag')
  expect([used.code, used.stderr]).toEqual([
    0,
    expect.stringMatching(
      /agent\.model\.type\.replication_lag: not set → small, from the next run on\.\nNobody has measured the model qwen-8b/,
    ),
  ])
  expect(await inForce('replication_lag')).toMatchObject({ 'agent.model.type': 'small' })
  expect(await inForce('host_down')).toMatchObject({ 'agent.model.type': null })

  const back = await run('back', '--type', 'replication_lag')
  expect([back.code, back.stderr]).toEqual([0, expect.stringContaining('small → not set')])
  expect(await inForce('replication_lag')).toMatchObject({ 'agent.model.type': null })
  const { body } = await api.get('/models')
  expect(body.routes).toEqual([])
  await run('back', '--type', 'replication_lag')
  expect(await inForce('replication_lag')).toMatchObject({ 'agent.model.type': 'small' })
})

test('without a type leaders and followers use the model, and both return to their earlier setting', async () => {
  const used = await run('use', 'default')
  expect(used.stderr).toMatch(
    /Runs of replication_lag stay with small. To change them too: .*model use default --type replication_lag/,
  )
  expect((await run('use', 'small')).stderr).not.toContain('stay with')
  expect(await inForce('host_down')).toMatchObject({ 'agent.model.leader': 'small', 'agent.model.follower': 'small' })
  const back = JSON.parse((await run('back', '--json')).stdout)
  expect(back).toEqual([
    { key: 'agent.model.leader', from: 'small', to: 'default' },
    { key: 'agent.model.follower', from: 'small', to: 'default' },
  ])
})

test('an undeclared model is not used, and a setting that was never made is not reverted', async () => {
  const unknown = await run('use', 'gone')
  expect([unknown.code, unknown.stderr]).toEqual([
    3,
    expect.stringMatching(/No model is declared as gone; there is default, small/),
  ])
  const never = await run('back', '--type', 'disk_pressure')
  expect([never.code, never.stderr]).toEqual([3, expect.stringContaining('was never set')])
})

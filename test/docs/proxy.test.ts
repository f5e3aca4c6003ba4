import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { connectionPath } from '../../domain/mesh-connection.ts'

test('the proxy of the page passes on the WebSocket of agents that call out', () => {
  const page = readFileSync('docs/how-to/production.md', 'utf8')
  const [, server = ''] = /^### nginx\n+```\n(.*?)```/ms.exec(page) ?? []
  const [, location = ''] = new RegExp(`location = ${connectionPath} \\{(.*?)\\}`, 's').exec(server) ?? []
  expect(location).toMatch(/proxy_http_version 1\.1;/)
  expect(location).toMatch(/proxy_set_header Upgrade \$http_upgrade;/)
  expect(location).toMatch(/proxy_set_header Connection upgrade;/)
})

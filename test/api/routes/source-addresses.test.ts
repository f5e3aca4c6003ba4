import { expect, test } from '@jest/globals'
import { useApi } from '../../support/api.ts'

const api = useApi()

/** `put` of a source of PostgreSQL at this address, and its removal where it was taken. */
async function putAt(url: string) {
  const body = { kind: 'postgresql', url }
  const put = await api.put('/sources/orders', { body })
  const tested = put.status === 200 ? (await api.post('/sources/orders/test')).status : null
  if (put.status === 200) await api.post('/sources/orders/remove')
  return { status: put.status, tested, detail: String(put.body.detail ?? '') }
}

test.each([
  'postgresql://127.0.0.1:1/%zz',
  'postgresql://127.0.0.1:1/%ff',
  'postgresql://127.0.0.1:1/a%00b',
  'postgresql://127.0.0.1:1/a/b',
  'postgresql://127.0.0.1:0/a',
  'postgresql:///orders',
  'postgresql:orders',
  'postgresql://a,b:5432/orders',
  'postgresql://%31.2.3.4/orders',
  'https://127.0.0.1:1/orders',
])('the address %s of a database server is refused, and the refusal shows a valid form', async (url) => {
  expect(await putAt(url)).toMatchObject({
    status: 422,
    detail: expect.stringContaining('postgresql://HOST:PORT/DATABASE'),
  })
})

test.each([
  'postgresql://127.0.0.1:1/orders',
  'postgresql://127.0.0.1:1',
  'postgresql://[::1]:1/orders_2',
  'postgresql://localhost:1/two%20words',
  'postgresql://localhost:1/%C3%B8re',
])('the address %s of a database server is accepted, and a test of it reports the answer', async (url) => {
  expect(await putAt(url)).toMatchObject({ status: 200, tested: 200 })
})

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, test } from '@jest/globals'
import { freeMemory } from '../../worker/free-memory.ts'

test('after a burst the heap of a thread is returned, not only that of the process', async () => {
  const thread = new Worker(
    `const { parentPort } = require('node:worker_threads')
    let burst = Array.from({ length: 1_000_000 }, (_, n) => ({ n }))
    burst = null
    setInterval(() => {}, 1_000)
    parentPort.postMessage('it is over')`,
    { eval: true },
  )
  try {
    await once(thread, 'message')
    const before = await thread.getHeapStatistics()
    await freeMemory()
    const after = await thread.getHeapStatistics()
    expect(after.used_heap_size).toBeLessThan(before.used_heap_size / 2)
    expect(after.total_physical_size).toBeLessThan(before.total_physical_size / 2)
  } finally {
    await thread.terminate()
  }
})

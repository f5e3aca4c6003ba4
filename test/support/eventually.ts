/**
 * Waits for a fact, and answers it: for what another process or a loop does in its own time. Almost as patient as the tests
 * themselves: a busy machine takes longer, and that is not wrong.
 */
export async function eventually<T>(
  what: string,
  condition: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  timeoutMs = 100_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const answer = await condition()
    if (answer) return answer
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** What is under way as this process ends has this long to come to an end; then it is given back. */
const graceMs = 1_000

export const givenBack = Symbol('given back')

/** Waits for what is under way. Once the process is to end it waits for `graceMs` only: then the caller gives back what it holds. */
export async function unlessStopping<T>(work: Promise<T>, stopping: AbortSignal): Promise<T | typeof givenBack> {
  let timer: NodeJS.Timeout | undefined
  let begin = () => {}
  const late = new Promise<typeof givenBack>((resolve) => {
    begin = () => {
      timer = setTimeout(() => resolve(givenBack), graceMs)
    }
  })
  if (stopping.aborted) begin()
  else stopping.addEventListener('abort', begin, { once: true })
  // After that nobody waits for what it comes to.
  work.catch(() => {})
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
    stopping.removeEventListener('abort', begin)
  }
}

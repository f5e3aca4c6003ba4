/**
 * Runs a round at once, and again `everyMs` after each end. Returns a function that stops the
 * rounds.
 */
export function startRounds(round: () => Promise<void>, everyMs: number): () => void {
  let timer: NodeJS.Timeout
  let isStopped = false
  const tick = async () => {
    await round()
    if (!isStopped) timer = setTimeout(tick, everyMs)
  }
  timer = setTimeout(tick, 0)
  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}

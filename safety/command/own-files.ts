/** Kinds of files that a program uses and does not print, known by place and name. */

type OwnKind = 'credential' | 'socket' | 'settings' | 'compose' | 'certificate' | 'runtime'

/** Matches places where only the administrator writes, with names of keys and certificates. */
const credentials =
  /^\/(?:etc|var\/lib|run\/secrets|var\/run\/secrets)\/[\w./-]+(?:\.(?:pem|key|crt|cert|cer|keyring)|\/(?:tls|ca)\.\w+)$/
const sockets = /^\/(?:var\/)?run\/[\w./-]+\.(?:asok|sock)$/
const settings = /^\/etc\/[\w./-]+\.(?:ya?ml|conf|toml)$/
const composeFiles = /^(?:[\w./-]*\/)?(?:[\w-]+[.-])?(?:docker-)?compose[\w.-]*\.ya?ml$/

/** Matches paths, but not addresses, because names of key stores have a colon. */
const certificates = /^(?!\/+(?:dev|proc)\b)(?!.*\/private\/)[\w./][\w@+./-]*\.(?:crt|pem|cer|cert|csr|crl)$/
const runtimes =
  /^(?:unix:\/\/)?\/(?:var\/)?run\/(?:containerd\/containerd|k3s\/containerd\/containerd|crio\/crio|cri-dockerd|dockershim)\.sock$/

/**
 * Returns the reason why this path is not a file of this kind that belongs to the program; null if
 * it is one.
 */
export function whyNotOwn(kind: OwnKind, text: string, program: string): string | null {
  if (text.includes('..')) return 'leads up'
  switch (kind) {
    case 'credential':
      return credentials.test(text) ? null : "is not a key or certificate in an administrator's directory"
    case 'socket':
      return sockets.test(text) && text.split('/').includes(program) ? null : 'is not the socket of its own service'
    case 'settings':
      return settings.test(text) && text.includes(program.replace(/ctl$/, ''))
        ? null
        : 'is not its own settings below /etc'
    case 'certificate':
      return certificates.test(text) ? null : 'is not a plain path of a certificate'
    case 'runtime':
      return runtimes.test(text) ? null : 'is not a socket of a container runtime'
    case 'compose':
      return composeFiles.test(text) ? null : 'is not named like a compose file'
  }
}

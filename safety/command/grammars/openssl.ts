import type { Grammars } from '../grammar.ts'
import { spell } from './spell.ts'

/** -out writes, -engine and -provider load code, -key, -pass and kin read secrets: left out of all of it. s_client sends its
 * input, so that is nothing or the letter that ends it. */
export const openssl: Grammars = {
  openssl: {
    manual: 'openssl(1), OpenSSL 3.0',
    style: 'word',
    commands: {
      ciphers: {
        manual: 'openssl-ciphers(1)',
        options: spell({ flag: '-s -v -V -tls1_2 -tls1_3 -stdname' }),
        operands: { first: ['text'] },
      },
      crl: {
        manual: 'openssl-crl(1)',
        options: spell({
          flag: '-noout -text -issuer -lastupdate -nextupdate -hash -fingerprint -crlnumber',
          file: '-in',
          text: '-inform -nameopt',
        }),
      },
      list: {
        manual: 'openssl-list(1)',
        options: spell({ flag: '-commands -digest-commands -cipher-commands -cipher-algorithms -providers -disabled' }),
      },
      req: {
        manual: 'openssl-req(1)',
        options: spell({ flag: '-noout -text -subject -verify -pubkey', file: '-in', text: '-inform -nameopt' }),
        requires: ['-in'],
      },
      verify: {
        manual: 'openssl-verify(1)',
        options: spell({
          flag: '-verbose -show_chain -x509_strict -partial_chain',
          file: '-CAfile -CApath -untrusted -trusted -CRLfile',
          text: '-purpose -verify_hostname',
        }),
        operands: { rest: 'file' },
      },
      s_client: {
        // -CAfile and kin are read, -keylogfile, -sess_out and -msgfile write, -key and -cert are its own, -proxy goes elsewhere.
        manual: 'openssl-s_client(1)',
        options: spell({
          flag: '-showcerts -brief -quiet -no_ign_eof -status -tls1_2 -tls1_3 -no_ssl3 -4 -6 -verify_quiet -verify_return_error -servername_none -tlsextdebug -state -prexit',
          host: '-connect -host',
          name: '-servername -verify_hostname -starttls -alpn -cipher -ciphersuites -groups',
          number: '-port -verify -verify_depth',
        }),
        requires: ['-connect', '-host'],
        input: '^[Q\\s]*$',
      },
      version: { manual: 'openssl-version(1)', options: spell({ flag: '-a -b -d -f -o -p -v -r -m -e' }) },
      x509: {
        manual: 'openssl-x509(1)',
        options: spell({
          flag: `-noout -text -subject -issuer -dates -startdate -enddate -serial -fingerprint -sha1 -sha256 -hash -subject_hash -issuer_hash
            -purpose -pubkey -modulus -email -ocsp_uri -ocspid`,
          file: '-in',
          text: '-inform -nameopt -certopt -ext -checkend -checkhost -checkip -checkemail',
        }),
      },
    },
  },
}

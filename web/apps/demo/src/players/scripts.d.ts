/** Video.js as its makers publish it for pages; its engine has no types. */
declare module 'video.js/dist/video.min.js' {
  const videojs: unknown;
  export default videojs;
}
declare module 'video.js/dist/video-js.min.css';

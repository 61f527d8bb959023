# Writes per_protocol.json and rows.csv: weights for censoring at deviation by glm and coxph, and
# weighted Cox models with robust variance by person. Run in this folder.
suppressMessages({library(survival);library(splines)})
source("../json.R")
vec<-function(x) structure(as.numeric(x),array=TRUE)
set.seed(20)
n<-500; K<-8
A<-rbinom(n,1,.5); age<-round(rnorm(n),2); L<-rnorm(n); alive<-rep(TRUE,n); rows<-NULL
for(k in 0:(K-1)){
  L<-round(.5*L+.8*rnorm(n)+.3*age-.3*A,2)
  y<-rbinom(n,1,plogis(-3+.6*L-.4*A)); leaves<-rbinom(n,1,plogis(-2+.9*L+.3*A))*(1-y)
  rows<-rbind(rows,data.frame(id=1:n,arm=A,entry=k,time=k+1,event=y,leaves=leaves,L=L,age=age)[alive,])
  alive<-alive&y==0&leaves==0
}
rows<-rows[order(rows$id,rows$entry),]; rownames(rows)<-NULL
write.csv(rows,"rows.csv",row.names=FALSE)

# The product over the rows of a person before each row, or up to it.
before<-function(x,id) ave(x,id,FUN=function(v) c(1,cumprod(v)[-length(v)]))
upto<-function(x,id) ave(x,id,FUN=cumprod)
stay_glm<-function(rows,rhs,arm,trials){
  own<-rows[rows$arm==arm&trials,]
  f<-glm(as.formula(paste("leaves ~",rhs)),data=own,family=binomial,control=glm.control(epsilon=1e-14,maxit=100))
  out<-rep(1,nrow(rows)); out[rows$arm==arm&trials]<-1-fitted(f)
  list(stay=out,coef=coef(f),loglik=as.numeric(logLik(f)))
}
both<-function(fun){a<-fun(1);b<-fun(0);list(stay=a$stay*b$stay,target=a,comparator=b)}
outcome<-function(rows,w,rhs){
  f<-coxph(as.formula(paste("Surv(entry,time,event) ~",rhs)),data=cbind(rows,w=w)[w>0,],weights=w,cluster=id,ties="breslow",
    control=coxph.control(eps=1e-12,iter.max=100,toler.chol=1e-14))
  list(coef=vec(coef(f)),robust_se=vec(sqrt(diag(f$var))),model_se=vec(sqrt(diag(f$naive.var))))
}
out<-list(R=R.version.string,survival=as.character(packageVersion("survival")))

survived<-rows$event==0
moment<-rows$time
den<-both(function(a) stay_glm(rows,"ns(time,df=3)+L+age",a,survived))
num<-both(function(a) stay_glm(rows,"ns(time,df=3)+age",a,survived))
time_only<-both(function(a) stay_glm(rows,"ns(time,df=3)",a,survived))
plain<-1/before(den$stay,rows$id)
stabilised<-before(num$stay,rows$id)/before(den$stay,rows$id)
marginal<-before(time_only$stay,rows$id)/before(den$stay,rows$id)
limits<-quantile(stabilised,c(.01,.99)); cut<-pmin(pmax(stabilised,limits[1]),limits[2])
out$end<-list(weight=vec(plain),stabilised=vec(stabilised),marginal=vec(marginal),truncated=vec(cut),limits=vec(limits),
  coef=list(target=vec(den$target$coef[c("L","age")]),comparator=vec(den$comparator$coef[c("L","age")])),
  loglik=list(target=den$target$loglik,comparator=den$comparator$loglik),
  fit_plain=outcome(rows,plain,"arm"),fit_marginal=outcome(rows,marginal,"arm"),fit_truncated=outcome(rows,cut,"arm+age"))

# Deviations at the start of a row: all rows are trials, and the last row of who deviates is left out.
start<-rows; start$time<-rows$entry
den<-both(function(a) stay_glm(start,"ns(time,df=2)+L+age",a,TRUE))
num<-both(function(a) stay_glm(start,"ns(time,df=2)",a,TRUE))
w<-ifelse(rows$leaves==1,0,upto(num$stay,rows$id)/upto(den$stay,rows$id))
out$start<-list(weight=vec(w),fit=outcome(rows,w,"arm"))

# A Cox model of the time of deviation; an event comes before a deviation of the same time.
stay_cox<-function(rows,rhs,arm){
  own<-rows[rows$arm==arm,]; own$end<-own$time-1e-6*own$event
  f<-coxph(as.formula(paste("Surv(entry,end,leaves) ~",rhs)),data=own,ties="breslow",control=coxph.control(eps=1e-12,iter.max=100,toler.chol=1e-14))
  b<-basehaz(f,centered=FALSE); H<-stepfun(b$time,c(0,b$hazard))
  x<-if(length(coef(f))) as.matrix(own[names(coef(f))])%*%coef(f) else 0
  s<-rep(1,nrow(rows)); s[rows$arm==arm]<-exp(-(H(own$end)-H(own$entry))*exp(as.numeric(x))); list(stay=s,coef=coef(f))
}
den<-both(function(a) stay_cox(rows,"L+age",a)); num<-both(function(a) stay_cox(rows,"age",a)); none<-both(function(a) stay_cox(rows,"1",a))
w<-before(num$stay,rows$id)/before(den$stay,rows$id)
m<-before(none$stay,rows$id)/before(den$stay,rows$id)
out$cox<-list(stabilised=vec(w),marginal=vec(m),coef=list(target=vec(den$target$coef),comparator=vec(den$comparator$coef)),fit=outcome(rows,w,"arm+age"))
writeLines(json(out),"per_protocol.json")
